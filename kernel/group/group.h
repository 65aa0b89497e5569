/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Owners of colours: what the fault path knows of a group.
 *
 * A group is a colour set, its policy, and the tasks that allocate by it. How
 * it is made, changed and removed is palette/life.h.
 *
 * A task's group is 16 bits of task->atomic_flags (with 8 bits of the load
 * generation, so that flags left by an earlier load mean nothing): atomic
 * from any CPU, copied to children, kept over exec. The fault path steps the
 * id into a group with group_get_fast() under preempt_disable() and touches
 * nothing else of the task.
 *
 * Frames in use are what was handed out less what came back, each counted on the
 * CPU where it happened: a fault writes no line that another CPU writes.
 *
 * Locking: sol_group_mutex (control path: joining, colours, palette). The
 * fault path reads ->cells and the policy under RCU. It may take a frame for
 * a group, and count it in ->stats, only in the preempt-off section in which it
 * read ->cells: a group goes away one grace period after its last reference,
 * when no frame is in use. A frame in use keeps its group's number and memory.
 */
#ifndef SOLOIST_GROUP_H
#define SOLOIST_GROUP_H

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include "../../core/colors/palette.h"
#include "bits.h"

#define SOL_MAX_GROUPS		65535
#define SOL_GROUP_NAME		64	/* longer names are cut in messages */

/* What the fault path needs of the colour set, replaced whole. */
struct sol_cells {
	struct rcu_head rcu;
	u32 n;
	u32 first[SOL_MAX_NODES + 1];	/* cells of node i: first[i]..first[i+1] */
	u32 per_set[SOL_MAX_NODES];	/* of these: sol_cells_per_set() */
	u8 nearest[SOL_MAX_NODES];	/* the nearest node with cells */
	u32 reserve;		/* frames that each cell keeps for the group */
	u32 cell[];			/* ascending, all can hold pages */
};

/*
 * Times by their order: [i] below 2^(SOL_TIME_MIN + i) ns, the last what is
 * longer.
 */
#define SOL_TIMES	16
#define SOL_TIME_MIN	10

/* Per CPU; summed when read. Counts of 4 KiB pages or of events. */
struct sol_group_stats {
	u64 hits;		/* pages handed out */
	u64 zeroed;		/* of these, known zero: nothing was cleared */
	u64 page_tables;	/* of these, page tables */
	u64 refills;		/* times the lists were filled */
	u64 spilled;		/* pages out of colour: exhausted, policy spill */
	u64 exhausted;		/* requests with no page in colour */
	u64 contradicted;	/* of these, allowed on no node of the colours */
	u64 grown;		/* colours added by policy grow */
	u64 freed;		/* pages that came back, or left their colour */
	u64 moved;		/* pages that the kernel moved out of colour */
	u64 large;		/* huge pages refused (or, if whole in colour, passed) */
	u64 looked;		/* frames that evacuations looked at */
	u32 fault[SOL_TIMES];	/* requests for which nothing was at hand */
	u32 refill[SOL_TIMES];	/* refills, as counted above */
};

/**
 * struct sol_node_state - where a group's allocations on a node stand
 * @cursor: cell where the next scan begins; racy on purpose
 * @search_failures: searches in a row that found nothing
 * @full_times: times in a row that evacuating was in vain
 * @evacuate_cursor: cell where the next evacuation begins; racy on purpose
 * @search_after: jiffies: no search before that. A group that found nothing backs
 *	off, longer each time
 * @evacuate_after: jiffies: no evacuation for it before that
 * @full_until: jiffies: evacuating is known to be in vain until then
 *
 * On cache lines of its own.
 */
struct sol_node_state {
	u32 cursor;
	u8 search_failures;
	u8 full_times;
	u32 evacuate_cursor;
	unsigned long search_after;
	unsigned long evacuate_after;
	unsigned long full_until;
} ____cacheline_aligned_in_smp;

/* Nothing was found for the group lately, so nothing will be refilled now. */
static inline bool sol_node_backs_off(const struct sol_node_state *node)
{
	return time_before(jiffies, READ_ONCE(node->search_after));
}

/* What a group does when its colours have no page left. */
enum sol_exhaust {
	SOL_FAIL,	/* CAMC: no page; the task gets a signal */
	SOL_GROW,	/* CAMC: take another free colour */
	SOL_SPILL,	/* any page of the node, counted */
	SOL_N_EXHAUST
};

/* Which pages of files a task has copies of, in colour, though it only reads them. */
enum sol_copies {
	SOL_COPIES_PROGRAMS,	/* of programs and libraries */
	SOL_COPIES_NONE,	/* none */
	SOL_COPIES_ALL,		/* of any file that is mapped privately */
};

/**
 * struct sol_group - a colour set and who allocates by it
 * @id: 1..SOL_MAX_GROUPS; not given to another group before this one is freed
 * @exhaust: enum sol_exhaust
 * @huge_ok: every 2 MiB block that touches the colours lies in them whole
 * @text: enum sol_copies
 * @implicit: made by a rule or by the mmap() ABI, not by mkdir
 * @dead: removed; waits for its last reference and its last frame
 * @ephemeral: to be removed when its last task goes
 * @had_tasks: a task was in it
 * @cells: NULL: does not colour (yet, or any more)
 * @stats: per CPU
 * @node: by node
 * @refs: tasks in the group, and one for its directory or its maker. Never
 *	rises from zero
 * @reserve: 4 KiB frames to keep in the lists
 * @grow_after: jiffies: until then there is no free colour; sol_group_mutex
 * @colors: sol_group_mutex
 * @maker, @maker_start: mmap() ABI: the thread that it was made for; both, since
 *	thread ids come again
 * @maker_uid: mmap() ABI and rules: whose thread that was
 * @quota: of the rule that made it, or NULL; with @ruled, on the list of those
 * @n_sets: bank sets in @colors
 * @reap: on the list of groups without references
 * @link: on the list of groups that still have frames in use
 * @rcu: delays the freeing
 * @name: of the directory, or of the rule, or "mmap"
 */
struct sol_group {
	u16 id;
	u8 exhaust;
	u8 huge_ok;
	u8 text;
	bool implicit;
	bool dead;
	bool ephemeral;
	bool had_tasks;
	struct sol_cells __rcu *cells;
	struct sol_group_stats __percpu *stats;
	struct sol_node_state *node;
	/* Not for the fault path: */
	atomic_t refs ____cacheline_aligned_in_smp;
	u64 reserve;
	unsigned long grow_after;
	struct sol_colors colors;
	pid_t maker;
	kuid_t maker_uid;
	u32 n_sets;
	struct sol_quota *quota;
	struct list_head ruled;
	u64 maker_start;
	struct llist_node reap;
	struct list_head link;
	struct rcu_head rcu;
	char name[SOL_GROUP_NAME];
};

extern struct sol_group __rcu *sol_groups[];	/* by id; [0] is NULL */
extern struct mutex sol_group_mutex;

/**
 * struct sol_group_count - how many groups there are
 * @named: made by mkdir
 * @implicit: made by rules and by the mmap() ABI
 * @dead: removed, but with frames still in use
 */
struct sol_group_count {
	u32 named;
	u32 implicit;
	u32 dead;
};

extern struct sol_group_count sol_group_counts;	/* sol_group_mutex */
void sol_group_count(struct sol_group_count *count);

/* Add @n to a statistic of @group, which stays: preemption is off. */
#define sol_group_add(group, stat, n)	this_cpu_add((group)->stats->stat, n)

/* Add @n to a statistic of the group of @id, if there is one. */
#define sol_group_add_to(id, stat, n)					\
do {									\
	u16 id_ = (id);							\
									\
	sol_with_group(group_, id_)					\
		sol_group_add(group_, stat, n);				\
} while (0)

/* A page for @group, which stays: preemption is off. */
static __always_inline void sol_group_charge(struct sol_group *group,
					     bool zeroed, bool table)
{
	sol_group_add(group, hits, 1);
	if (zeroed)
		sol_group_add(group, zeroed, 1);
	if (table)
		sol_group_add(group, page_tables, 1);
}

static inline unsigned int sol_time_order(u64 ns)
{
	return min(fls64(ns >> SOL_TIME_MIN), SOL_TIMES - 1);
}

/* Caller: preemption off or rcu_read_lock(). */
static inline struct sol_group *group_get_fast(u16 id)
{
	return id ? rcu_dereference_check(sol_groups[id],
					  rcu_read_lock_sched_held()) : NULL;
}

/*
 * sol_with_group(g, id) { ... }: the block runs once with @g, the group of @id,
 * which stays meanwhile: preemption is off. Not at all if there is no such group.
 * The block ends at its end or with `continue`: no break, no goto, no return.
 */
#define sol_with_group(g, id)						\
	for (struct sol_group *g = sol_group_enter(id); g;		\
	     g = sol_group_leave())

static inline struct sol_group *sol_group_enter(u16 id)
{
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(id);
	if (!g)
		preempt_enable();
	return g;
}

static inline struct sol_group *sol_group_leave(void)
{
	preempt_enable();
	return NULL;
}

/* A reference more: the caller has one, or the mutex and a living group. */
void sol_group_get(struct sol_group *group);

/* One less. Any context. */
void sol_group_put(struct sol_group *group);

/* Free @group, to which nothing refers any more. */
void sol_group_free(struct sol_group *group);

/* What palette/life.c does with ephemeral groups whose last task went. */
extern struct work_struct sol_emptied_work;

/* What palette/reap.c does with groups that nobody refers to any more. */
extern struct llist_head sol_reap_list;
extern struct work_struct sol_reap_work;

/* Sum of the statistics. Any context. */
void sol_group_sum(const struct sol_group *group, struct sol_group_stats *sum);

/*
 * Frames in use. Exact if none can be handed out any more and it says 0: what
 * came back is counted first, and only ever rises.
 */
u64 sol_group_used(const struct sol_group *group);

#endif /* SOLOIST_GROUP_H */
