/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: pages in colour stay where they are, and Linux gets listed frames back
 * when it needs memory.
 *
 *   move.c      hooks on migration, swap and KSM
 *   reclaim.c   shrinker, OOM killer, failing memory, MemAvailable
 *   unplug.c    memory blocks that go offline
 */
#ifndef SOLOIST_KEEP_H
#define SOLOIST_KEEP_H

#include <linux/types.h>

/**
 * sol_move_allow_swap() - let coloured pages be swapped for a while
 *
 * Called when the OOM killer is near. Return: true: pages were kept from swap since the
 * last call, so that this may help.
 */
bool sol_move_allow_swap(void);

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

/* The sum over all CPUs, into @sum. */
void sol_move_sum(struct sol_move_stats *sum);

int sol_move_init(void);
void sol_move_exit(void);
int sol_reclaim_init(void);
void sol_reclaim_exit(void);
int sol_unplug_init(void);
void sol_unplug_exit(void);

#endif /* SOLOIST_KEEP_H */
