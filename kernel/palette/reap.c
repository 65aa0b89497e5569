// SPDX-License-Identifier: GPL-2.0
/*
 * Reaping: a group colours no more, and goes when its last frame has come back.
 *
 * A group is retired when it is removed, or when its last reference goes: it gives
 * its colours back to the palette and colours no more. Its number and memory go
 * when no frame of it is in use: frames remember their owner by number, and pages
 * outlive tasks (tmpfs, pipes).
 *
 * Differs from the papers: CAMC and TintMalloc keep colours in the task itself, so
 * that a colour is free again while pages of it are in use. Here the automatic
 * assignment leaves out colours that still hold pages.
 *
 * Locking: sol_group_mutex for groups and their number; reap_mutex, outside of
 * it, for the list of groups that still have frames in use.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../compat/workqueue.h"
#include "../frames/isolated.h"
#include "../group/group.h"
#include "../hook/table.h"
#include "../trace/trace.h"
#include "cells.h"
#include "lazy.h"
#include "map.h"
#include "quota.h"
#include "reap.h"

typedef void lru_drain_fn(void);
DEFINE_STATIC_CALL_NULL(sol_lru_drain, lru_drain_fn);

#define DRAIN_JIFFIES	(HZ / 10)
#define DRAINS		3	/* after a removal, at most, a second apart */

static void drain_fn(struct work_struct *work);
static DECLARE_WORK(drain_work, drain_fn);
static DECLARE_COMPLETION(drained);
static bool drain_isolated;		/* the next drain asks all isolated CPUs, too */

static void reap_fn(struct work_struct *work);
static LIST_HEAD(lingering);		/* dead, frames perhaps in use */
static DEFINE_MUTEX(reap_mutex);	/* guards lingering, drains */
static u32 drains;			/* that the lingering may still have, ... */
static unsigned long next_drain;	/* ... and when, in jiffies */
static bool leaving;
static DECLARE_DELAYED_WORK(linger_work, reap_fn);

/* ---- Retiring ---- */

/* Tell its last figures: those who look at its files now and then missed these. */
static void tell_removed(const struct sol_group *group)
{
	struct sol_group_stats sum;

	if (!trace_soloist_group_removed_enabled())
		return;
	sol_group_sum(group, &sum);
	trace_soloist_group_removed(group, &sum);
}

void sol_group_retire(struct sol_group *group)
{
	struct sol_err err;

	lockdep_assert_held(&sol_group_mutex);
	if (group->dead)
		return;
	tell_removed(group);
	WRITE_ONCE(group->dead, true);
	WRITE_ONCE(group->ephemeral, false);
	WRITE_ONCE(group->huge_ok, false);
	group->reserve = 0;
	sol_cells_publish(group, NULL);
	if (sol_colors_restrict(&group->colors))
		sol_palette_change(&sol_palette, &group->colors, NULL, &err);
	group->colors.by_bank = false;
	group->colors.by_llc = false;
	*(group->implicit ? &sol_group_counts.implicit : &sol_group_counts.named) -= 1;
	sol_group_counts.dead++;
}

/* ---- Pages that idle CPUs keep ---- */

/* Add the CPUs where @group got pages, which may wait in a batch there. */
static void add_cpus_of(const struct sol_group *group, struct cpumask *cpus)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (READ_ONCE(per_cpu_ptr(group->stats, cpu)->hits))
			cpumask_set_cpu(cpu, cpus);
}

/*
 * Does a group whose tasks are gone have frames in use? @cpus, if not NULL, becomes where such
 * groups got pages. A group counts there for its first drains only: else one whose pages stay
 * (tmpfs) would have CPUs asked whenever another one ends.
 */
static bool any_lingers(struct cpumask *cpus)
{
	struct sol_group *group;
	bool any = false;
	u32 id;

	if (cpus)
		cpumask_clear(cpus);
	mutex_lock(&sol_group_mutex);
	for (id = 1; id <= SOL_MAX_GROUPS && (cpus || !any); id++) {
		group = rcu_dereference_protected(sol_groups[id],
				lockdep_is_held(&sol_group_mutex));
		if (!group || atomic_read(&group->refs) || !sol_group_used(group))
			continue;
		any = true;
		if (cpus && group->drains < DRAINS) {
			group->drains++;
			add_cpus_of(group, cpus);
		}
	}
	mutex_unlock(&sol_group_mutex);
	return any;
}

/* Of isolated CPUs only those are asked where a removed group had pages. */
static void empty_batches(void)
{
	static struct cpumask cpus;

	if (xchg(&drain_isolated, false) || !sol_any_isolated())
		static_call(sol_lru_drain)();
	else if (any_lingers(&cpus))
		sol_lazy_empty_batches(&cpus, DRAIN_JIFFIES);
}

/*
 * Pages of ended tasks may wait for the LRU lists in an idle CPU's batch, for minutes,
 * and the root of their page tables until the CPU runs another task. A work item asks
 * CPUs for them. A CPU that a real-time task has for itself never answers, so we
 * wait for the work for a moment only, and without a lock.
 */
static void drain_fn(struct work_struct *work)
{
	empty_batches();
	if (any_lingers(NULL))
		sol_lazy_let_go(DRAIN_JIFFIES);
	complete_all(&drained);
	if (READ_ONCE(sol_group_counts.dead) && !READ_ONCE(leaving))
		mod_delayed_work(sol_unbound_wq(), &linger_work, 0);
}

static void drain_begin(void)
{
	if (!work_busy(&drain_work))
		reinit_completion(&drained);
	queue_work(sol_unbound_wq(), &drain_work);
}

/* The caller may be any exec. */
void sol_reap_drain(bool isolated)
{
	if (!isolated && sol_any_isolated()) {
		sol_lazy_empty_batches(NULL, DRAIN_JIFFIES);
		return;
	}
	if (isolated)
		WRITE_ONCE(drain_isolated, true);
	drain_begin();
	wait_for_completion_killable_timeout(&drained, DRAIN_JIFFIES);
}

/* ---- Removed groups ---- */

/* Retire what lost its last reference; returns whether there was any. */
static bool reap_new(void)
{
	struct llist_node *first = llist_del_all(&sol_reap_list);
	struct sol_group *group;

	mutex_lock(&sol_group_mutex);
	llist_for_each_entry(group, first, reap) {
		sol_group_retire(group);
		list_add_tail(&group->link, &lingering);
	}
	mutex_unlock(&sol_group_mutex);
	return first;
}

/* Frames of removed groups are in use: look again later, and drain batches. */
static void linger(void)
{
	queue_delayed_work(sol_unbound_wq(), &linger_work, HZ);
	if (!drains || time_before(jiffies, next_drain))
		return;
	drains--;
	next_drain = jiffies + HZ;
	drain_begin();
}

/*
 * Free removed groups. A fault that read a group's cells may still count a frame: after
 * the first grace period the number of frames in use only falls. The one who counted
 * the last frame may still use the group: hence the second grace period.
 */
static void reap_fn(struct work_struct *work)
{
	struct sol_group *group, *next;
	LIST_HEAD(gone);

	mutex_lock(&reap_mutex);
	if (reap_new()) {
		drains = DRAINS;
		next_drain = jiffies;
		synchronize_rcu();
	}

	mutex_lock(&sol_group_mutex);
	list_for_each_entry_safe(group, next, &lingering, link) {
		if (sol_group_used(group))
			continue;
		RCU_INIT_POINTER(sol_groups[group->id], NULL);
		sol_quota_end(group);
		sol_group_counts.dead--;
		list_move(&group->link, &gone);
	}
	mutex_unlock(&sol_group_mutex);

	if (!list_empty(&gone))
		synchronize_rcu();
	list_for_each_entry_safe(group, next, &gone, link)
		sol_group_free(group);
	if (!list_empty(&lingering) && !READ_ONCE(leaving))
		linger();
	mutex_unlock(&reap_mutex);
}

void sol_reap_now(void)
{
	reap_fn(NULL);
}

/* ---- Load and unload ---- */

int sol_reap_init(void)
{
	INIT_WORK(&sol_reap_work, reap_fn);
	sol_lazy_init();
	return sol_bind(sol_lru_drain, "lru_add_drain_all");
}

void sol_reap_exit(void)
{
	WRITE_ONCE(leaving, true);	/* nothing is queued from now on, ... */
	cancel_work_sync(&sol_emptied_work);
	cancel_work_sync(&sol_reap_work);
	cancel_delayed_work_sync(&linger_work);
	cancel_work_sync(&drain_work);
	sol_lazy_exit();
	/* ... but that one was, by a drain that had looked before. */
	cancel_delayed_work_sync(&linger_work);
	reap_fn(NULL);
}
