/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Filling lists as the papers do, block by block (CAMC Algorithms 2 and 3).
 * The kernel module takes single frames out of free blocks instead.
 */
#ifndef SOLOIST_FILL_H
#define SOLOIST_FILL_H

#include "../frames/frames.h"

/*
 * A source of frames: the kernel's buddy allocator, or the simulator's model of one.
 * Blocks are naturally aligned, of 2^order frames.
 */
struct sol_source {
	/* A free block on @node of order at most @max; -1: none within limits. */
	s64 (*block)(void *ctx, u32 node, u32 max, u32 *order, bool *zero);
	/* Take the lock of @cell, release it (NULL: single-threaded). */
	void (*lock)(void *ctx, u32 cell);
	void (*unlock)(void *ctx, u32 cell);
	void *ctx;
	u32 max_order;	/* largest block to split */
	u32 max_frames;	/* frames that one fill may take */
	/*
	 * Take back a frame of a block that the map does not cover, so that no
	 * list can hold it. NULL: the map covers all that @block returns.
	 */
	void (*back)(void *ctx, u32 pfn);
};

/**
 * sol_frames_fill() - fill lists from a source
 * @fs: the frames
 * @src: the source
 * @cells: stop when one of these cells has a listed frame
 * @n: how many
 * @hit: becomes its index in @cells, or @n
 *
 * It stops, too, when the source has nothing more or ->max_frames were taken. The paper
 * splits one block per order and gives up; this goes on.
 *
 * Return: frames added. 0 with *@hit == @n: exhausted.
 */
u32 sol_frames_fill(struct sol_frames *fs, const struct sol_source *src,
		    const u32 *cells, u32 n, u32 *hit);

#endif /* SOLOIST_FILL_H */
