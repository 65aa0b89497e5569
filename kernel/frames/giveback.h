/* SPDX-License-Identifier: GPL-2.0 */
/* Counting listed frames, and giving them back. */
#ifndef SOLOIST_GIVEBACK_H
#define SOLOIST_GIVEBACK_H

#include <linux/types.h>

/**
 * struct sol_store_stats - counts of 4 KiB frames
 * @listed: in lists or at hand now
 * @zero: of those in lists, known to be zero
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

void sol_store_stats(struct sol_store_stats *stats);

/* Frames in use in @bank_set: the palette's `in_use`. */
u64 sol_store_used_in(const void *unused, u32 bank_set);

/* Frames on node @nid (NUMA_NO_NODE: everywhere) that the shrinker may have. */
unsigned long sol_store_count(int nid);

/*
 * Give back up to @n listed frames of @nid, but for reserved ones; unknown
 * content first. Any context that may free pages. Frames given.
 */
unsigned long sol_store_shrink(int nid, unsigned long n);

/* All listed frames back to the buddy allocator, reserved ones too. Frames given. */
u64 sol_store_drain_all(void);

/* The same, because the kernel is about to kill something. */
u64 sol_store_drain_oom(void);

/* No frame in [start, end) stays in a list. May sleep. */
void sol_store_evict(u64 start, u64 end);

int sol_giveback_init(void);	/* 0 or -ENOENT */
void sol_giveback_exit(void);

#endif /* SOLOIST_GIVEBACK_H */
