/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Frame lists: free frames by cell, TintMalloc's color_list[bank][LLC].
 *
 * Each frame of the machine has one struct sol_frame (8 bytes, 0.2 % of memory). A
 * frame is in one of four states:
 *
 *   foreign  the system's own
 *   listed   free, in the list of its cell
 *   held     free, but on no list: in a per-CPU list, or on its way
 *   used     handed out, and remembered until it is freed
 *
 * A cell has two lists: of frames that are known to be zero, and of others. Lists are
 * stacks, linked through the array of frames itself. So the kernel and the simulator
 * run the same code, and no struct page is touched.
 *
 * Neighbours in memory have different colours, and eight frames share a cache line of
 * the array, so that CPUs that work for different groups would write the same lines.
 * Therefore the slot of a frame is its number with the lowest three bits exchanged for
 * three bits on which no colour depends (->swap_bit), if the map has such bits. Every
 * free of the machine asks whether a frame is ours; the answer is a byte of its own
 * that changes only when a frame comes or goes (->owned).
 *
 * Locking: the caller's. Functions on one cell need the lock of that cell only: frames
 * of different cells share no word that both write.
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

/**
 * struct sol_frame - one frame
 * @tag: its cell and state, see above; 0: foreign
 * @link: listed: the next frame of the stack; used: id of the owner
 */
struct sol_frame {
	u32 tag;
	u32 link;
};

/**
 * struct sol_cell - the lists of a cell
 * @head: first frame of each list: [0] content unknown, [1] known to be zero
 * @listed: frames in each
 * @used: frames used or held
 * @mark: frame after which sol_frames_evict() goes on
 * @mark_list: the list of @mark, 0 or 1
 *
 * On a cache line of its own, so that owners of different cells do not disturb each
 * other.
 */
struct sol_cell {
	_Alignas(64) u32 head[2];
	u32 listed[2];
	u32 used;
	u32 mark;
	u32 mark_list;
};

/**
 * struct sol_frames - all frames of a machine
 * @map: address map; NULL: none yet
 * @frame: sol_frames_slots(@n_frames) elements, by slot
 * @owned: @n_frames elements, by frame number: 1, unless the frame is foreign
 * @cell: @map->n_cells elements
 * @n_frames: frames
 * @swap_bit: lowest of the three bits that are exchanged; 0: slots are frame numbers
 */
struct sol_frames {
	const struct sol_map *map;
	struct sol_frame *frame;
	u8 *owned;
	struct sol_cell *cell;
	u32 n_frames;
	u32 swap_bit;
};

/* Slots are numbered within blocks of so many bits. */
#define SOL_SLOT_BITS	15u

/* Elements of the frame array for @n_frames frames. */
static inline u64 sol_frames_slots(u32 n_frames)
{
	u64 mask = (1u << SOL_SLOT_BITS) - 1;

	return (n_frames + mask) & ~mask;
}

/* Begin with empty lists. @frame and @owned must be zeroed; @cell need not be. */
void sol_frames_init(struct sol_frames *fs, const struct sol_map *map,
		     struct sol_frame *frame, u8 *owned, u32 n_frames,
		     struct sol_cell *cell);

/**
 * sol_frames_swap_bit() - bits of a frame number on which no colour depends
 * @map: the address map
 *
 * Return: the lowest of three such bits in a row, for ->swap_bit; 0: there are none
 * below SOL_SLOT_BITS.
 */
u32 sol_frames_swap_bit(const struct sol_map *map);

/* The slot of frame @pfn. The function is its own inverse. */
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

/* Is frame @pfn ours: listed, held or used? */
static inline bool sol_frames_owned(const struct sol_frames *fs, u64 pfn)
{
	return pfn < fs->n_frames && SOL_READ(fs->owned[pfn]);
}

/* Put a foreign frame on the list of @cell, which sol_map_cell() says is its own. */
void sol_frames_add(struct sol_frames *fs, u32 cell, u32 pfn, bool zero);

/*
 * Foreign frame @pfn, which others use, is used by owner 0 from now on, so that it comes
 * back when they free it.
 */
void sol_frames_adopt(struct sol_frames *fs, u32 cell, u32 pfn);

/**
 * sol_frames_get() - hand out a frame
 * @fs: the frames
 * @cell: of this cell
 * @owner: id of the new owner
 * @zero: take a frame that is known to be zero first, else last
 * @is_zero: becomes whether it is known to be zero
 *
 * Return: the frame; SOL_NO_FRAME: the lists are empty.
 */
u32 sol_frames_get(struct sol_frames *fs, u32 cell, u32 owner, bool zero,
		   bool *is_zero);

/**
 * sol_frames_hold() - take frames off a list, without an owner
 * @fs: the frames
 * @cell: of this cell
 * @zero: as for sol_frames_get()
 * @pfn: becomes the frames, all of one list; they are held
 * @n: at most so many
 * @is_zero: becomes whether they are known to be zero
 *
 * Return: how many.
 */
u32 sol_frames_hold(struct sol_frames *fs, u32 cell, bool zero, u32 *pfn, u32 n,
		    bool *is_zero);

/* Hand out a held frame of @cell to @owner. Its holder needs no lock. */
static inline void sol_frames_use(struct sol_frames *fs, u32 cell, u32 pfn,
				  u32 owner)
{
	struct sol_frame *frame = sol_frames_at(fs, pfn);

	frame->link = owner;
	SOL_WRITE_LAST(frame->tag, cell | SOL_TAG_USED);
}

/* Return a used or held frame to its list. Return: the owner that it had. */
u32 sol_frames_put(struct sol_frames *fs, u32 pfn, bool zero);

/* A used or held frame becomes foreign. Return: the owner that it had. */
u32 sol_frames_forget(struct sol_frames *fs, u32 pfn);

/* Make a listed frame of @cell foreign. Return: it; SOL_NO_FRAME: there is none. */
u32 sol_frames_drain(struct sol_frames *fs, u32 cell);

/**
 * sol_frames_evict() - make listed frames of an interval foreign
 * @fs: the frames
 * @cell: of this cell
 * @start: first frame
 * @end: first frame after the interval
 * @budget: frames to look at, at most
 * @gone: called for each frame
 * @ctx: for @gone
 *
 * The cell's lock may be released between calls. Meanwhile frames may be handed out
 * and freed, but none of the interval added. One such walk for each cell at a time.
 *
 * Return: what is left of @budget; 0: call again, it goes on where it stopped.
 */
u32 sol_frames_evict(struct sol_frames *fs, u32 cell, u32 start, u32 end,
		     u32 budget, void (*gone)(void *ctx, u32 pfn), void *ctx);

#endif /* SOLOIST_FRAMES_H */
