// SPDX-License-Identifier: GPL-2.0
/*
 * Groups by number, their references and statistics.
 *
 * Locking: see group.h.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../compat/workqueue.h"
#include "group.h"

struct sol_group __rcu *sol_groups[SOL_MAX_GROUPS + 1];
DEFINE_MUTEX(sol_group_mutex);
u8 sol_generation;
struct sol_group_count sol_group_counts;

LLIST_HEAD(sol_reap_list);
struct work_struct sol_reap_work;
struct work_struct sol_emptied_work;

void sol_group_get(struct sol_group *group)
{
	atomic_inc(&group->refs);
}

int sol_group_check_living(const struct sol_group *group)
{
	return READ_ONCE(group->dead) ?
	       sol_deny(-ENOENT, "%s: the group was removed", group->name) : 0;
}

void sol_group_put(struct sol_group *group)
{
	/* Read it now: the group may be freed once our reference is gone. */
	bool ephemeral = READ_ONCE(group->ephemeral);
	int guests = atomic_read(&group->guests);
	int left = atomic_dec_return(&group->refs);

	if (left && left <= guests + 1 && ephemeral)
		queue_work(sol_unbound_wq(), &sol_emptied_work);
	if (left)
		return;
	llist_add(&group->reap, &sol_reap_list);
	queue_work(sol_unbound_wq(), &sol_reap_work);
}

bool sol_group_keep(struct sol_group *group)
{
	lockdep_assert_held(&sol_group_mutex);
	if (!atomic_inc_not_zero(&group->refs))
		return false;
	atomic_inc(&group->guests);
	return true;
}

void sol_group_keep_no_more(struct sol_group *group)
{
	mutex_lock(&sol_group_mutex);
	atomic_dec(&group->guests);
	mutex_unlock(&sol_group_mutex);
	sol_group_put(group);
}

void sol_group_sum(const struct sol_group *group, struct sol_group_stats *sum)
{
	int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct sol_group_stats *s = per_cpu_ptr(group->stats, cpu);

		sum->hits += READ_ONCE(s->hits);
		sum->zeroed += READ_ONCE(s->zeroed);
		sum->page_tables += READ_ONCE(s->page_tables);
		sum->refills += READ_ONCE(s->refills);
		sum->spilled += READ_ONCE(s->spilled);
		sum->exhausted += READ_ONCE(s->exhausted);
		sum->contradicted += READ_ONCE(s->contradicted);
		sum->grown += READ_ONCE(s->grown);
		sum->freed += READ_ONCE(s->freed);
		sum->moved += READ_ONCE(s->moved);
		sum->large += READ_ONCE(s->large);
		sum->looked += READ_ONCE(s->looked);
		sum->waited += READ_ONCE(s->waited);
		for (i = 0; i < SOL_TIMES; i++) {
			sum->fault[i] += READ_ONCE(s->fault[i]);
			sum->refill[i] += READ_ONCE(s->refill[i]);
		}
	}
}

u64 sol_group_used(const struct sol_group *group)
{
	u64 freed = 0, hits = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		freed += READ_ONCE(per_cpu_ptr(group->stats, cpu)->freed);
	smp_rmb();	/* a page is freed after it was handed out */
	for_each_possible_cpu(cpu)
		hits += READ_ONCE(per_cpu_ptr(group->stats, cpu)->hits);
	return hits - freed;
}

void sol_group_free(struct sol_group *group)
{
	free_percpu(group->stats);
	kvfree(group->node);
	kvfree(group);
}

void sol_group_count(struct sol_group_count *out)
{
	mutex_lock(&sol_group_mutex);
	*out = sol_group_counts;
	mutex_unlock(&sol_group_mutex);
}
