/* SPDX-License-Identifier: GPL-2.0 */
/* Counting listed frames, and giving them back. */
#ifndef SOLOIST_GIVEBACK_H
#define SOLOIST_GIVEBACK_H

#include <linux/types.h>

/**
 * struct sol_store_stats - counts of frames
 * @listed: in lists now, those of CPUs too
 * @zero: of those in the cells' lists, known to be all zero
 * @kept: of these, reserved: the shrinker leaves them
 * @used: handed out and not yet freed
 * @taken: ever taken from the buddy allocator
 * @given: ever given back to it
 * @unkept: of these, reserved ones, because the OOM killer was near
 * @lost: that were in use and are no longer ours: of blocks being unplugged,
 *	broken ones, those of an earlier map
 */
struct sol_store_stats {
	u64 listed;
	u64 zero;
	u64 kept;
	u64 used;
	u64 taken;
	u64 given;
	u64 unkept;
	u64 lost;
};

/* Fill @stats. Any context. */
void sol_store_stats(struct sol_store_stats *stats);

/* Frames in use in @bank_set, for the palette's ->in_use. */
u64 sol_store_used_in(const void *unused, u32 bank_set);

/* Frames on node @nid that the shrinker may take. Any context; walks over no cell. */
unsigned long sol_store_count(int nid);

/**
 * sol_store_shrink() - give back listed frames that no group reserved
 * @nid: of this node
 * @n: at most so many; frames with unknown content go first
 *
 * Any context that may free pages. Return: frames given back.
 */
unsigned long sol_store_shrink(int nid, unsigned long n);

/* Has the shrinker taken frames of node @nid in the last second? */
bool sol_store_shrunk_lately(int nid);

/* Give back all listed frames, reserved ones too. Sleeps. */
void sol_store_drain_all(void);

/*
 * The same, because the kernel is about to kill something; counted apart. Return: how many
 * were of @nodes, a bitmap: where the task that wants memory may have some.
 */
u64 sol_store_drain_oom(u64 nodes);

/* Give back all listed frames in [start, end). May sleep. */
void sol_store_evict(u64 start, u64 end);

int sol_giveback_init(void);	/* 0 or -ENOENT */
void sol_giveback_exit(void);

#endif /* SOLOIST_GIVEBACK_H */
