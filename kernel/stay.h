/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages stay in their colour: what an address space must know so that Linux
 * neither moves nor merges nor replaces its pages. docs/moves.md says which
 * mechanism is met where.
 */
#ifndef SOLOIST_STAY_H
#define SOLOIST_STAY_H

#include <linux/bitops.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

#define SOL_MM_STAY	32	/* mm->flags: one of its tasks is coloured */
#define SOL_MM_THP	33	/* mm->flags: MMF_DISABLE_THP is ours */
#define SOL_TASK_THP	38	/* task->atomic_flags: the same, over exec; 39 is fault.c */

static inline bool sol_mm_stays(const struct mm_struct *mm)
{
	return test_bit(SOL_MM_STAY, &mm->flags);
}

/*
 * Bring the address space of @task in line with the groups of its threads.
 * To be called after @task joined or left a group, and for every task of a
 * group whose huge_ok changed. Takes mmap_lock: not under sol_group_mutex, which
 * the fault path takes below mmap_lock.
 */
void sol_stay_task(struct task_struct *task);

/* move.c: hooks on migration, swap and KSM. Called by sol_stay_init(). */
int sol_move_init(void);
void sol_move_exit(void);

/*
 * The OOM killer is near: let coloured pages be swapped for a while, if any
 * were kept from it since the last time. True if that may help.
 */
bool sol_move_relent(void);

/* Events of the whole system since load, for `stats`. */
struct sol_move_stats {
	u64 kept;	/* migrations refused, pages */
	u64 replaced;	/* pages that moved to a frame in colour */
	u64 moved;	/* pages that moved out of colour */
	u64 unswapped;	/* times a page was kept from swap */
	u64 swapped;	/* pages in colour that went to swap */
	u64 unmerged;	/* requests to merge that were ignored */
	u64 uncollapsed; /* huge pages that were not made of small ones */
};

void sol_move_sum(struct sol_move_stats *sum);

#endif /* SOLOIST_STAY_H */
