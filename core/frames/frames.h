/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Frame lists: free frames per cell, TintMalloc's color_list[bank][LLC].
 *
 * Every frame of the machine has one struct sol_frame (8 bytes, 0.2 %). A
 * frame is foreign (the system's own), listed (free, in its cell's list), held
 * (free, but at hand somewhere else) or used (handed out, remembered until it is
 * freed). A cell has two lists: frames known to be zero, and others. Lists are stacks linked through the
 * frame array itself, so the kernel and the simulator run the same code and
 * no struct page is touched.
 *
 * Neighbours in memory are of different colours, and eight frames share a cache
 * line of the array: CPUs that work for different groups would write the same
 * lines. So a frame's slot is its number with the lowest three bits changed for
 * three on which no colour depends (@swap_bit), where the map has such bits. What is
 * asked of every freed page, colour or not, is a byte of its own that changes
 * only when a frame comes or goes (@owned).
 *
 * Locking: the caller's. Functions on one cell need that cell's lock only;
 * frames of different cells never share a word that both write.
 */
#ifndef SOLOIST_FRAMES_H
#define SOLOIST_FRAMES_H

#include "../map/addrmap.h"

/* tag: cell in the low 20 bits, state above. 0: foreign. */
#define SOL_TAG_CELL	0x000fffffu
#define SOL_TAG_LISTED	0x00100000u
#define SOL_TAG_USED	0x00200000u
#define SOL_TAG_HELD	0x00800000u
#define SOL_TAG_ZERO	0x00400000u	/* listed, and certainly all zero */

struct sol_frame {
	u32 tag;
	u32 link;	/* listed: next frame of the stack; used: owner id */
};

/* On a cache line of its own: cells of different owners don't disturb others. */
struct sol_cell {
	_Alignas(64) u32 head[2];	/* [0] content unknown, [1] known zero */
	u32 listed[2];	/* frames in each */
	u32 used;	/* frames used or held */
	u32 mark;	/* where sol_frames_evict() goes on: frame ... */
	u32 mark_list;	/* ... and list, 0 or 1 */
};

struct sol_frames {
	const struct sol_map *map;
	struct sol_frame *frame;	/* sol_frames_slots(n_frames), by slot */
	u8 *owned;			/* n_frames, by pfn: 1, unless foreign */
	struct sol_cell *cell;		/* map->n_cells */
	u32 n_frames;
	u32 swap_bit;	/* lowest of the three bits; 0: a slot is a frame number */
};

/* Slots are numbered within blocks of so many bits. */
#define SOL_SLOT_BITS	15u

/* Length of the frame array. */
static inline u64 sol_frames_slots(u32 n_frames)
{
	u64 mask = (1u << SOL_SLOT_BITS) - 1;

	return (n_frames + mask) & ~mask;
}

/* @frame and @owned must be zeroed, @cell need not. */
void sol_frames_init(struct sol_frames *fs, const struct sol_map *map,
		     struct sol_frame *frame, u8 *owned, u32 n_frames,
		     struct sol_cell *cell);

/*
 * The lowest of three neighbouring bits of a frame's number on which no colour
 * of @map depends, for ->swap_bit; 0: there are none below SOL_SLOT_BITS.
 */
u32 sol_frames_swap_bit(const struct sol_map *map);

/* Its own inverse. */
static inline u32 sol_frames_slot(const struct sol_frames *fs, u32 pfn)
{
	u32 changed = (pfn >> fs->swap_bit ^ pfn) & 7;

	return pfn ^ changed ^ changed << fs->swap_bit;
}

static inline struct sol_frame *sol_frames_at(const struct sol_frames *fs,
					      u32 pfn)
{
	return &fs->frame[sol_frames_slot(fs, pfn)];
}

static inline bool sol_frames_owned(const struct sol_frames *fs, u64 pfn)
{
	return pfn < fs->n_frames && SOL_READ(fs->owned[pfn]);
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
 * As above, up to @n frames into @pfn, all of one list (*@is_zero says which);
 * they are held then, and nobody's. Returns how many.
 */
u32 sol_frames_hold(struct sol_frames *fs, u32 cell, bool zero, u32 *pfn, u32 n,
		    bool *is_zero);

/* Hand out a held frame of @cell to @owner. No lock: whoever holds it may. */
static inline void sol_frames_use(struct sol_frames *fs, u32 cell, u32 pfn,
				  u32 owner)
{
	struct sol_frame *frame = sol_frames_at(fs, pfn);

	frame->link = owner;
	SOL_WRITE(frame->tag, cell | SOL_TAG_USED);
}

/* A used or held frame goes back on its list. Returns the owner it had. */
u32 sol_frames_put(struct sol_frames *fs, u32 pfn, bool zero);

/* Forget a used or held frame (it goes to the system). Returns its owner. */
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

#endif /* SOLOIST_FRAMES_H */
