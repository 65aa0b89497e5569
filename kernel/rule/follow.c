// SPDX-License-Identifier: GPL-2.0
/*
 * Following tasks into bound cgroups and out of them.
 *
 * Tracepoints can't sleep: they only change the number of a task's group. A work item
 * brings the address space in line a moment later. It gets those tasks by a short list;
 * if more came than that holds, it looks at all.
 *
 * Locking: bindings are read under RCU. moved_lock, raw, for the list of tasks.
 */
#include <linux/cgroup.h>
#include <linux/jiffies.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/workqueue.h>

#include "../group/group.h"
#include "../group/member.h"
#include "../hook/probe.h"
#include "binding.h"
#include "cgroup.h"

/* ---- Address spaces of tasks that moved ---- */

#define MOVED_MAX	64

/* Of each process a thread, with a reference. */
static struct task_struct *moved[MOVED_MAX];
static u32 n_moved;
static bool more_moved;
static DEFINE_RAW_SPINLOCK(moved_lock);

static struct task_struct *next_moved(void)
{
	struct task_struct *task = NULL;

	raw_spin_lock_irq(&moved_lock);
	if (n_moved)
		task = moved[--n_moved];
	raw_spin_unlock_irq(&moved_lock);
	return task;
}

static void settle_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(settle_work, settle_fn);

static void settle_fn(struct work_struct *work)
{
	struct task_struct *task;

	while ((task = next_moved())) {
		sol_member_settle(task);
		put_task_struct(task);
	}
	if (!xchg(&more_moved, false) || !sol_member_settle_all())
		return;
	pr_warn_ratelimited("no memory to settle tasks that moved between cgroups; trying again\n");
	WRITE_ONCE(more_moved, true);
	schedule_delayed_work(&settle_work, HZ);
}

/* A thread of @task's process changed its group. Any context. */
static void settle_later(struct task_struct *task)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&moved_lock, flags);
	if (n_moved < MOVED_MAX)
		moved[n_moved++] = get_task_struct(task);
	else
		WRITE_ONCE(more_moved, true);
	raw_spin_unlock_irqrestore(&moved_lock, flags);
	schedule_delayed_work(&settle_work, 0);
}

/* ---- Following cgroups: probes ---- */

/* @task moved to another cgroup. RCU. Return: and so to another group. */
static bool follow(struct task_struct *task)
{
	struct binding *b = sol_binding_of(task);
	u16 id = group_id_of(task);
	bool changed;

	/* A task that is being forked: probe_newtask() comes later. */
	if (sol_member_is_new(task) || !sol_binding_changes(b, id))
		return false;
	changed = sol_member_assign(task, b ? b->group->id : 0);
	if (!changed && b)
		atomic64_inc(&b->refused);
	return changed;
}

/* Forked into another cgroup than its parent's: CLONE_INTO_CGROUP, or a race. */
static void probe_newtask(void *data, struct task_struct *child,
			  unsigned long clone_flags)
{
	struct binding *b;
	u16 id;

	if (!READ_ONCE(sol_n_bindings))
		return;
	rcu_read_lock();
	if (task_dfl_cgroup(child) != task_dfl_cgroup(current)) {
		b = sol_binding_of(child);
		id = group_id_of(child);
		if (sol_binding_changes(b, id))
			if (!sol_member_assign_child(child,
						     b ? b->group->id : 0,
						     clone_flags) && b)
				atomic64_inc(&b->refused);
	}
	rcu_read_unlock();
}

static void probe_attach(void *data, struct cgroup *to, const char *path,
			 struct task_struct *task, bool threadgroup)
{
	struct task_struct *thread;
	bool changed = false;

	if (!READ_ONCE(sol_n_bindings) || to->root != &cgrp_dfl_root)
		return;
	rcu_read_lock();
	if (threadgroup)
		for_each_thread(task, thread)
			changed |= follow(thread);
	else
		changed = follow(task);
	rcu_read_unlock();
	if (changed)
		settle_later(task);
}

static void probe_mkdir(void *data, struct cgroup *cgrp, const char *path)
{
	struct binding *b;

	if (cgrp->root != &cgrp_dfl_root)
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(b, &sol_bindings, link)
		if (!strcmp(b->path, path))
			sol_binding_set(b, cgrp);
	rcu_read_unlock();
}

static void probe_rmdir(void *data, struct cgroup *cgrp, const char *path)
{
	struct binding *b;

	rcu_read_lock();
	list_for_each_entry_rcu(b, &sol_bindings, link)
		if (READ_ONCE(b->cgrp) == cgrp)
			sol_binding_set(b, NULL);
	rcu_read_unlock();
}

static struct sol_probe probes[] = {
	/* Registered after member.c's, and called after it. */
	{ "task_newtask", probe_newtask },
	{ "cgroup_attach_task", probe_attach },
	{ "cgroup_mkdir", probe_mkdir },
	{ "cgroup_rmdir", probe_rmdir },
};

/* ---- Load and unload ---- */

int sol_cgroup_init(void)
{
	return sol_probes_add(probes, ARRAY_SIZE(probes));
}

/* No group has a directory any more, so that no group is bound. */
void sol_cgroup_exit(void)
{
	sol_probes_remove(probes, ARRAY_SIZE(probes));
	flush_delayed_work(&settle_work);
	cancel_delayed_work_sync(&settle_work);
}
