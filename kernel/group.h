/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups: a colour set, its policy, and the tasks that allocate by it.
 *
 * A task's group is 16 bits of task->atomic_flags (with 8 bits of the load
 * generation, so that flags left by an earlier load mean nothing): atomic
 * from any CPU, copied to children, kept over exec. The fault path turns the
 * id into a group with group_get_fast() under preempt_disable() and touches
 * nothing else of the task.
 *
 * Locking: sol_group_mutex (control path: joining, colours, palette). The
 * fault path reads ->cells and the policy under RCU. It may take a frame for
 * a group, and count it in ->used, only in the preempt-off section in which it
 * read ->cells: a group goes away one grace period after its last reference,
 * when no frame is in use. A frame in use keeps its group's number and memory.
 */
#ifndef SOLOIST_GROUP_H
#define SOLOIST_GROUP_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include "../core/palette.h"

/* task->atomic_flags: bits 40..55 group id (0: none), 56..63 generation. */
#define SOL_FLAG_ID_SHIFT	40
#define SOL_FLAG_GEN_SHIFT	56
#define SOL_FLAG_MASK		(~0ul << SOL_FLAG_ID_SHIFT)

/*
 * mm->flags, the same, for faults that another task causes (ptrace, userfaultfd,
 * /proc/PID/mem): bits 40..55 the id of the thread group leader, 56..63
 * generation. Neither fork nor exec inherits these bits; member.c sets them.
 */
#define SOL_MM_ID_SHIFT		40
#define SOL_MM_GEN_SHIFT	56

#define SOL_MAX_GROUPS		65535
#define SOL_GROUP_NAME		64	/* longer names are cut in messages */

enum sol_exhaust {
	SOL_FAIL,	/* CAMC: no page; the task gets a signal */
	SOL_GROW,	/* CAMC: take another free colour */
	SOL_SPILL,	/* any page of the node, counted */
	SOL_N_EXHAUST
};

/* What the fault path needs of the colour set, replaced whole. */
struct sol_cells {
	struct rcu_head rcu;
	u32 n;
	u32 first[SOL_MAX_NODES + 1];	/* cells of node i: first[i]..first[i+1] */
	u32 per_set[SOL_MAX_NODES];	/* of these: sol_cells_per_set() */
	u32 cell[];			/* ascending, all can hold pages */
};

/* Per CPU; summed when read. Counts of 4 KiB pages or of events. */
struct sol_group_stats {
	u64 hits;		/* pages handed out from a list */
	u64 zeroed;		/* of these, known zero: nothing was cleared */
	u64 page_tables;	/* of these, page tables */
	u64 refills;		/* times the lists were filled */
	u64 spilled;		/* pages out of colour: exhausted, policy spill */
	u64 exhausted;		/* requests with no page in colour */
	u64 grown;		/* colours added by policy grow */
	u64 freed;		/* pages that came back */
	u64 moved;		/* pages that the kernel moved out of colour */
	u64 large;		/* huge pages refused (or, if whole in colour, passed) */
};

/**
 * struct sol_group - a colour set and who allocates by it
 * @id: 1..SOL_MAX_GROUPS; not given to another group before this one is freed
 * @exhaust: enum sol_exhaust
 * @huge_ok: every 2 MiB block that touches the colours lies in them whole
 * @implicit: made by a rule or by the mmap() ABI, not by mkdir
 * @dead: removed; waits for its last reference and its last frame
 * @cells: NULL: does not colour (yet, or any more)
 * @stats: per CPU
 * @used: frames in use, by the owner that sol_frames_get() was told
 * @cursor: per node, racy on purpose: where the next search begins
 * @refs: tasks in the group, and one for its directory or its maker. Never
 *	rises from zero
 * @reserve: 4 KiB frames to keep in the lists
 * @colors: sol_group_mutex
 * @maker, @maker_start: mmap() ABI: the thread that it was made for; both, since
 *	thread ids come again
 * @reap: on the list of groups without references
 * @link: on the list of groups that still have frames in use
 * @rcu: delays the freeing
 * @name: of the directory, or of the rule, or "mmap"
 */
struct sol_group {
	u16 id;
	u8 exhaust;
	u8 huge_ok;
	bool implicit;
	bool dead;
	struct sol_cells __rcu *cells;
	struct sol_group_stats __percpu *stats;
	atomic_long_t used;
	u32 *cursor;
	/* Not for the fault path: */
	atomic_t refs;
	u64 reserve;
	struct sol_colors colors;
	pid_t maker;
	u64 maker_start;
	struct llist_node reap;
	struct list_head link;
	struct rcu_head rcu;
	char name[SOL_GROUP_NAME];
};

extern u8 sol_generation;			/* of this load, never 0 */
extern struct sol_group __rcu *sol_groups[];	/* by id; [0] is NULL */
extern struct mutex sol_group_mutex;

/* Add @n to a statistic of @group; preemption off, or a lost count is fine. */
#define sol_group_add(group, stat, n)	raw_cpu_add((group)->stats->stat, n)

/* Group id in @task's flags, 0: none or of another load. Any context. */
static inline u16 group_id_of(const struct task_struct *task)
{
	unsigned long f = READ_ONCE(task->atomic_flags);

	if ((u8)(f >> SOL_FLAG_GEN_SHIFT) != sol_generation)
		return 0;
	return f >> SOL_FLAG_ID_SHIFT;
}

/* Group id in @mm's flags, 0: none or of another load. Any context. */
static inline u16 group_id_of_mm(const struct mm_struct *mm)
{
	unsigned long f = READ_ONCE(mm->flags);

	if ((u8)(f >> SOL_MM_GEN_SHIFT) != sol_generation)
		return 0;
	return f >> SOL_MM_ID_SHIFT;
}

/* Caller: preemption off or rcu_read_lock(). */
static inline struct sol_group *group_get_fast(u16 id)
{
	return id ? rcu_dereference_check(sol_groups[id],
					  rcu_read_lock_sched_held()) : NULL;
}

/* The map, under sol_group_mutex or in a group's own calls; NULL: none yet. */
const struct sol_map *sol_group_map(void);
int sol_group_map_set(const char *text, size_t len);

struct sol_group *sol_group_new(const char *name, bool implicit);
void sol_group_get(struct sol_group *group);
void sol_group_put(struct sol_group *group);
void sol_group_remove(struct sol_group *group);

int sol_group_edit(struct sol_group *group,
		   int (*edit)(struct sol_colors *colors, const void *arg),
		   const void *arg);
int sol_group_auto(struct sol_group *group, const struct sol_want *want);

/*
 * For exhaust=grow, in a fault (may sleep): @seen is ->n of the cells that the
 * caller found empty. 0: look again, there are more; -ENOSPC: no free colour.
 */
int sol_group_grow(struct sol_group *group, u32 seen);

void sol_group_sum(const struct sol_group *group, struct sol_group_stats *sum);

u64 sol_group_capacity(const struct sol_group *group);

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

void sol_group_count(struct sol_group_count *count);

struct sol_colors *sol_colors_new(const struct sol_map *map);
void sol_colors_copy(const struct sol_map *map, struct sol_colors *to,
		     const struct sol_colors *from);
void sol_colors_free(struct sol_colors *colors);

#endif /* SOLOIST_GROUP_H */
