/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups: struct sol_group, and what the fault path knows of it.
 *
 * A group is a colour set, its policy, and the tasks that allocate by it. Members are
 * in member.h; how groups get colours, are made and removed is in palette/.
 *
 * A task's group is 16 bits of task->atomic_flags (bits.h). The fault path looks the
 * group up by that number, with preemption off, and uses nothing else of the task.
 *
 * Frames in use are those that were handed out less those that came back. Each event
 * is counted on the CPU where it happens, so that a fault writes no cache line that
 * another CPU writes.
 *
 * Locking: sol_group_mutex for joining, colours and the palette. The fault path
 * reads ->cells and the policy under RCU. It takes a frame for a group and counts it
 * in ->stats only in the preempt-off section in which it read ->cells. A group is
 * freed a grace period after its last reference went and its last frame came back: a
 * frame in use keeps the number and memory of its group.
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

/**
 * struct sol_cells - the cells of a group's colours; replaced as a whole
 * @rcu: delays the freeing
 * @n: cells
 * @first: cells of node i: first[i] to first[i + 1], exclusive
 * @per_set: by node: sol_cells_per_set() of its cells
 * @nearest: by node: the nearest node with cells
 * @reserve: frames that each cell keeps from the shrinker for the group
 * @cell: the cells that can hold pages, ascending
 */
struct sol_cells {
	struct rcu_head rcu;
	u32 n;
	u32 first[SOL_MAX_NODES + 1];
	u32 per_set[SOL_MAX_NODES];
	u8 nearest[SOL_MAX_NODES];
	u32 reserve;
	u32 cell[];
};

/* Histograms of times: [i] below 2^(SOL_TIME_MIN + i) ns, the last one longer. */
#define SOL_TIMES	16
#define SOL_TIME_MIN	10

/* Statistics: per CPU, summed when read. Counts of small pages or of events. */
struct sol_group_stats {
	u64 hits;		/* pages handed out */
	u64 zeroed;		/* of these, known zero: nothing was cleared */
	u64 page_tables;	/* of these, page tables */
	u64 refills;		/* times the lists were filled */
	u64 spilled;		/* pages out of colour, by policy spill */
	u64 exhausted;		/* requests with no page in colour */
	u64 contradicted;	/* of these, allowed on none of the nodes */
	u64 grown;		/* colours added by policy grow */
	u64 freed;		/* pages that came back, or left their colour */
	u64 moved;		/* pages that the kernel moved out of colour */
	u64 large;		/* huge pages refused (or, if whole in colour, passed) */
	u64 looked;		/* frames in use that supply looked at */
	u64 waited;		/* requests that waited for supply */
	u32 fault[SOL_TIMES];	/* requests beyond the per-CPU list */
	u32 refill[SOL_TIMES];	/* refills, as counted above */
};

enum sol_outcome {
	SOL_FOUND,	/* there were frames */
	SOL_NO_COLOR,	/* the group's own pages, or ones that stay, have its colours */
	SOL_NO_MEMORY,	/* the node has too little free memory */
};

/**
 * struct sol_last_look - how far supply has looked at last, where it gave way
 * @stage: before or after the lists of CPUs were emptied, or memory reclaimed
 * @begin: the cursor then
 * @step: the cell, by steps from there
 * @in_cell: in the middle of that
 * @looks: frames that the stage may still look at; 0: it has not begun
 */
struct sol_last_look {
	u8 stage;
	bool in_cell;
	u32 begin;
	u32 step;
	u32 looks;
};

/**
 * struct sol_node_state - where a group's supply on a node stands (supply/)
 * @cursor: cell where the next scan begins; racy on purpose
 * @goal: frames that supply lists ahead of need; 0: as few as it ever does
 * @answers: passes that supply made for the group
 * @vain: passes in a row that found no frame; one less for each that found some, so
 *	that a frame now and then does not make a full group patient again
 * @outcome: of the last pass, enum sol_outcome
 * @drained: the kernel's lists of CPUs are being emptied for it; for supply's thread
 * @drains: how often that had been done before
 * @dry_until: jiffies: no pass is asked for before that
 * @last: for supply's thread, too
 *
 * On cache lines of its own.
 */
struct sol_node_state {
	u32 cursor;
	u32 goal;
	u32 answers;
	u8 vain;
	u8 outcome;
	bool drained;
	u32 drains;
	unsigned long dry_until;
	struct sol_last_look last;
} ____cacheline_aligned_in_smp;

#define SOL_PATIENCE	8u	/* passes in vain before a group counts as full */

/* Supply found nothing for the group lately, and is not asked again for now. */
static inline bool sol_node_dry(const struct sol_node_state *node)
{
	return time_before(jiffies, READ_ONCE(node->dry_until));
}

/* It found nothing so often that there is no use in asking again. */
static inline bool sol_node_full(const struct sol_node_state *node)
{
	return READ_ONCE(node->vain) >= SOL_PATIENCE;
}

/* Policies for a group whose colours have no page left. */
enum sol_exhaust {
	SOL_FAIL,	/* CAMC: no page; the task gets a signal */
	SOL_GROW,	/* CAMC: take another free colour */
	SOL_SPILL,	/* any page of the node, counted */
	SOL_N_EXHAUST
};

/* Pages of files that a task copies to its colours though it only reads them. */
enum sol_copies {
	SOL_COPIES_PROGRAMS,	/* of programs and libraries */
	SOL_COPIES_NONE,	/* none */
	SOL_COPIES_ALL,		/* of any file that is mapped privately */
};

/**
 * struct sol_group - a colour set and who allocates by it
 * @id: 1 to SOL_MAX_GROUPS; no other group gets it before this one is freed
 * @exhaust: enum sol_exhaust
 * @huge_ok: each block of a huge page that touches the colours lies in them as a whole
 * @text: enum sol_copies
 * @implicit: made by a rule or by the mmap() ABI, not by mkdir
 * @dead: removed; its last reference or its last frame may still be there
 * @ephemeral: to be removed when its last task goes
 * @had_tasks: a task has been in it
 * @reserving: somebody fills its reserve
 * @recolorers: who change its colours or their policy just now; sol_guard_mutex
 * @drains: how often isolated CPUs were asked for its last pages; sol_group_mutex
 * @cells: NULL: it does not colour (yet, or any more)
 * @stats: per CPU
 * @node: by node
 * @refs: tasks in the group, @guests, and one for its directory or its maker. It never
 *	rises from zero
 * @guests: references of others that keep it for long. Changes under sol_group_mutex
 * @reserve: frames to keep in the lists
 * @grow_after: jiffies: until then there is no free colour; sol_group_mutex
 * @colors: sol_group_mutex
 * @maker: mmap() ABI: the thread that it was made for
 * @maker_start: when that thread began, since thread ids come again
 * @maker_uid: mmap() ABI and rules: whose thread that was
 * @quota: of the rule that made it, or NULL
 * @ruled: on the list of the groups of @quota
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
	bool reserving;
	u16 recolorers;
	u8 drains;
	struct sol_cells __rcu *cells;
	struct sol_group_stats __percpu *stats;
	struct sol_node_state *node;
	/* Not for the fault path: */
	atomic_t refs ____cacheline_aligned_in_smp;
	atomic_t guests;
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

/* Count a page that @group gets; preemption is off. */
static __always_inline void sol_group_charge(struct sol_group *group,
					     bool zeroed, bool table)
{
	sol_group_add(group, hits, 1);
	if (zeroed)
		sol_group_add(group, zeroed, 1);
	if (table)
		sol_group_add(group, page_tables, 1);
}

/* Index of @ns in a histogram of times. */
static inline unsigned int sol_time_order(u64 ns)
{
	return min(fls64(ns >> SOL_TIME_MIN), SOL_TIMES - 1);
}

/* The group of @id, or NULL. Preemption is off, or RCU's read lock held. */
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

/* Does group @id have colours? One without may limit bandwidth alone. Any context. */
static inline bool sol_group_has_colors(u16 id)
{
	bool has = false;

	sol_with_group(group, id)
		has = rcu_access_pointer(group->cells);
	return has;
}

/* Take a reference. The caller has one, or sol_group_mutex and a living group. */
void sol_group_get(struct sol_group *group);

/* Give back a reference. Any context. */
void sol_group_put(struct sol_group *group);

/*
 * Keep a living group for long, as no task of it: its last task may go meanwhile, and then an
 * ephemeral group goes. sol_group_mutex is held. Return: false: it has no reference any more.
 */
bool sol_group_keep(struct sol_group *group);

/* The end of sol_group_keep(). May sleep. */
void sol_group_keep_no_more(struct sol_group *group);

/* Tasks in @group, which has a directory, at this moment; exact under sol_group_mutex. */
static inline u32 sol_group_tasks(const struct sol_group *group)
{
	int others = atomic_read(&group->guests) + 1;

	return max(atomic_read(&group->refs) - others, 0);
}

/* 0; -ENOENT and words if @group was removed. Any context. */
int sol_group_check_living(const struct sol_group *group);

/* Free @group, to which nothing refers any more. */
void sol_group_free(struct sol_group *group);

/* Work of palette/life.c: remove ephemeral groups whose last task went. */
extern struct work_struct sol_emptied_work;

/* Groups without a reference, and the work of palette/reap.c that frees them. */
extern struct llist_head sol_reap_list;
extern struct work_struct sol_reap_work;

/* The sum of @group's statistics over all CPUs, into @sum. Any context. */
void sol_group_sum(const struct sol_group *group, struct sol_group_stats *sum);

/**
 * sol_group_used() - frames in use
 * @group: the group
 *
 * Return: how many frames. If none can be handed out any more, 0 is exact: frames
 * that came back are counted first, and their number only rises.
 */
u64 sol_group_used(const struct sol_group *group);

#endif /* SOLOIST_GROUP_H */
