/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Frame lists: free frames per cell, TintMalloc's color_list[bank][LLC].
 *
 * Every frame of the machine has one struct sol_frame (8 bytes, 0.2 %). A
 * frame is foreign (the system's own), listed (free, in its cell's list) or
 * used (handed out, remembered until it is freed). A cell has two lists:
 * frames known to be zero, and others. Lists are stacks linked through the
 * frame array itself, so the kernel and the simulator run the same code and
 * no struct page is touched.
 *
 * Locking: the caller's. Functions on one cell need that cell's lock only;
 * frames of different cells never share a word that both write.
 */
#ifndef SOLOIST_FRAMES_H
#define SOLOIST_FRAMES_H

#include "addrmap.h"

/* tag: cell in the low 20 bits, state above. 0: foreign. */
#define SOL_TAG_CELL	0x000fffffu
#define SOL_TAG_LISTED	0x00100000u
#define SOL_TAG_USED	0x00200000u
#define SOL_TAG_ZERO	0x00400000u	/* listed, and certainly all zero */
#define SOL_TAG_FIXED	0x00800000u	/* not movable: page tables may take it */

struct sol_frame {
	u32 tag;
	u32 link;	/* listed: next frame of the stack; used: owner id */
};

struct sol_cell {
	u32 head[2];	/* [0] content unknown, [1] known zero */
	u32 listed[2];	/* frames in each */
	u32 used;	/* frames handed out and not yet freed */
	u32 mark;	/* where sol_frames_evict() goes on: frame ... */
	u32 mark_list;	/* ... and list, 0 or 1 */
};

struct sol_frames {
	const struct sol_map *map;
	struct sol_frame *frame;	/* n_frames, by pfn */
	struct sol_cell *cell;		/* map->n_cells */
	u32 n_frames;
};

/* @frame must be zeroed, @cell need not. */
void sol_frames_init(struct sol_frames *fs, const struct sol_map *map,
		     struct sol_frame *frame, u32 n_frames,
		     struct sol_cell *cell);

static inline bool sol_frames_owned(const struct sol_frames *fs, u64 pfn)
{
	return pfn < fs->n_frames && fs->frame[pfn].tag;
}

/* Put a foreign frame on its cell's list. The cell must be sol_map_cell()'s. */
void sol_frames_add(struct sol_frames *fs, u32 cell, u32 pfn, bool zero);

/*
 * Hand out a frame of @cell to @owner. A known-zero one first if @zero, last
 * if not; *@is_zero says which it was. SOL_NO_FRAME: the lists are empty.
 */
u32 sol_frames_get(struct sol_frames *fs, u32 cell, u32 owner, bool zero,
		   bool *is_zero);

/*
 * As above, up to @n frames into @pfn, all of one list (*@is_zero says which).
 * Returns how many.
 */
u32 sol_frames_get_many(struct sol_frames *fs, u32 cell, u32 owner, bool zero,
			u32 *pfn, u32 n, bool *is_zero);

/* A used frame was freed: back on its list. Returns the owner it had. */
u32 sol_frames_put(struct sol_frames *fs, u32 pfn, bool zero);

/* Forget a used frame (it goes back to the system). Returns its owner. */
u32 sol_frames_forget(struct sol_frames *fs, u32 pfn);

/* Take any listed frame of @cell off and make it foreign; SOL_NO_FRAME: none. */
u32 sol_frames_drain(struct sol_frames *fs, u32 cell);

/*
 * Take all listed frames with start <= pfn < end out of @cell, at most @budget
 * steps (frames looked at); calls @gone for each. Returns steps left, 0: call
 * again, going on where it stopped (memory going offline). The cell's lock may
 * be released between calls; meanwhile frames may be had and freed, but none
 * of the interval added. One such walk per cell at a time.
 */
u32 sol_frames_evict(struct sol_frames *fs, u32 cell, u32 start, u32 end,
		     u32 budget, void (*gone)(void *ctx, u32 pfn), void *ctx);

/* ---- Filling (CAMC Algorithms 2 and 3) ---- */

/*
 * Where frames come from. The kernel: its buddy allocator. The simulator: a
 * model of one. Blocks are naturally aligned, 2^order frames.
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

/*
 * Fill the lists from @src until a cell in @cells[n] has a listed frame, or
 * the source has nothing more, or max_frames were taken. The paper splits one
 * block per order and gives up; this goes on. Returns frames added; 0 and
 * none of @cells filled means exhausted. *@hit: the index in @cells, or n.
 */
u32 sol_frames_fill(struct sol_frames *fs, const struct sol_source *src,
		    const u32 *cells, u32 n, u32 *hit);

#endif /* SOLOIST_FRAMES_H */
