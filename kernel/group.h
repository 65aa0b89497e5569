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
 * Locking: group_mutex (control path: membership, colours, palette). The fault
 * path reads ->cells and the policy under RCU. A group's memory goes away
 * after its last task, its last configfs reference and its last used frame.
 */
#ifndef SOLOIST_GROUP_H
#define SOLOIST_GROUP_H

#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include "../core/palette.h"

/* task->atomic_flags: bits 40..55 group id (0: none), 56..63 generation. */
#define SOL_FLAG_ID_SHIFT	40
#define SOL_FLAG_GEN_SHIFT	56
#define SOL_MAX_GROUPS		65535

enum sol_exhaust {
	SOL_FAIL,	/* CAMC: no page; the task gets a signal */
	SOL_GROW,	/* CAMC: take another free colour */
	SOL_SPILL,	/* any page of the node, counted */
};

/* What the fault path needs of the colour set, replaced whole. */
struct sol_cells {
	struct rcu_head rcu;
	u32 n;
	u32 first[SOL_MAX_NODES + 1];	/* cells of node i: first[i]..first[i+1] */
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

struct sol_group {
	u16 id;
	u8 exhaust;			/* enum sol_exhaust */
	u8 huge_ok;			/* whole 2 MiB blocks are in colour */
	bool implicit;			/* made by a rule or by the mmap() ABI */
	struct sol_cells __rcu *cells;	/* NULL: does not colour (yet) */
	struct sol_group_stats __percpu *stats;
	atomic_long_t used;		/* frames in use, whoever asked last */
	atomic_t tasks;			/* lower bound; the truth is in the tasks' flags */
	u64 reserve;			/* frames to keep in the lists */
	struct sol_colors colors;	/* under group_mutex */
	u32 *cursor;			/* per node, racy on purpose: where to look next */
};

extern u8 sol_generation;
extern struct sol_group __rcu *sol_groups[];	/* by id; [0] is NULL */

/* Group id in @task's flags, 0: none or of another load. Any context. */
static inline u16 group_id_of(const struct task_struct *task)
{
	unsigned long f = READ_ONCE(task->atomic_flags);

	if ((u8)(f >> SOL_FLAG_GEN_SHIFT) != sol_generation)
		return 0;
	return f >> SOL_FLAG_ID_SHIFT;
}

/* Caller: preemption off or rcu_read_lock(). */
static inline struct sol_group *group_get_fast(u16 id)
{
	return id ? rcu_dereference_sched(sol_groups[id]) : NULL;
}

#endif /* SOLOIST_GROUP_H */
