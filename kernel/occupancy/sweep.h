/* SPDX-License-Identifier: GPL-2.0 */
/* Sweep: all frames of a set of cells, in the order of their addresses. */
#ifndef SOLOIST_SWEEP_H
#define SOLOIST_SWEEP_H

#include <linux/types.h>

struct sol_group;

#define SOL_SWEEP_RESTS	1

/**
 * struct sol_sweep - a sweep over frames of a group's colours
 * @cells: bitmap by cell of the colours; sol_sweep_begin() makes it
 * @one_of: look at one region with memory of so many; 0 or 1: at all
 * @visit: called for each frame, preemption on, in a section of the lists, so that the
 *	frame's memory stays. SOL_SWEEP_RESTS: @rest is called before the next one; below
 *	0: ends the sweep
 * @rest: called outside of a section: it may sleep as long as it likes. Not 0 ends the
 *	sweep
 * @over: called after each region, outside of a section: not 0 ends the sweep
 * @ctx: for all three
 * @seen: frames visited so far
 */
struct sol_sweep {
	unsigned long *cells;
	u32 one_of;
	int (*visit)(void *ctx, u64 pfn);
	int (*rest)(void *ctx);
	int (*over)(void *ctx);
	void *ctx;
	u64 seen;
};

/**
 * sol_sweep_begin() - note a group's colours as they are now
 * @sweep: becomes a sweep over all regions
 * @group: a group that exists, so that the address map stays
 *
 * Return: 0; -ENODATA: the group does not colour; -ENOMEM.
 */
int sol_sweep_begin(struct sol_sweep *sweep, struct sol_group *group);
void sol_sweep_end(struct sol_sweep *sweep);

/* Is @pfn a frame of the colours? */
bool sol_sweep_has(const struct sol_sweep *sweep, u64 pfn);

/**
 * sol_sweep_run() - visit the frames, from the lowest address upwards
 * @sweep: begun, with ->visit and ->over
 *
 * May sleep. Return: 0, or what ended it.
 */
int sol_sweep_run(struct sol_sweep *sweep);

/* Regions of the machine's memory; holes between them do not count. */
u64 sol_sweep_regions(void);

#endif /* SOLOIST_SWEEP_H */
