// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Frame lists: TintMalloc's matrix color_list[bank][LLC] as stacks through the
 * frame array.
 *
 * Differences from the papers: a list is per cell that can exist, not per
 * printed colour, and frames known to be zero have a stack of their own.
 *
 * Locking: a cell's lock for its stacks and for frames listed there. A used frame
 * belongs to its owner. Tags are read without a lock, hence whole writes.
 */
#include "frames.h"

void sol_frames_init(struct sol_frames *fs, const struct sol_map *map,
		     struct sol_frame *frame, u8 *owned, u32 n_frames,
		     struct sol_cell *cell)
{
	u32 i;

	fs->map = map;
	fs->frame = frame;
	fs->owned = owned;
	fs->n_frames = n_frames;
	fs->swap_bit = 0;
	fs->cell = cell;
	for (i = 0; i < map->n_cells; i++)
		cell[i] = (struct sol_cell) {
			.head = { SOL_NO_FRAME, SOL_NO_FRAME },
			.mark = SOL_NO_FRAME,
		};
}

/* ---- Slots ---- */

/* Are all eight frames that differ from @pfn in these bits of one cell? */
static bool one_cell(const struct sol_map *map, u64 pfn, u32 swap_bit)
{
	u32 cell = sol_map_cell(map, pfn), i;

	for (i = 1; i < 8; i++)
		if (sol_map_cell(map, pfn ^ i << swap_bit) != cell)
			return false;
	return true;
}

/* The range's blocks whose eights are all in it, [*first, *end) in frames. */
static void whole_blocks(const struct sol_map *map, const struct sol_range *r,
			 u32 swap_bit, u64 *first, u64 *end)
{
	u64 mask = (8ull << swap_bit) - 1;
	u32 shift = sol_frame_shift(map);

	*first = ((r->start >> shift) + mask) & ~mask;
	*end = (r->end >> shift) & ~mask;
}

/* No bit of the three decides, by one frame in each of 64 blocks over the range. */
static bool nothing_within(const struct sol_map *map, const struct sol_range *r,
			   u32 swap_bit)
{
	u64 block = 8ull << swap_bit, first, end, blocks, pfn, k;

	whole_blocks(map, r, swap_bit, &first, &end);
	if (first >= end)
		return true;
	blocks = (end - first) >> (swap_bit + 3);
	for (k = 0; k < 64; k++) {
		pfn = first + ((k * blocks) >> 6) * block;
		pfn += (k * 0x9e3779b1u >> 8) & (block - 1);
		if (!one_cell(map, pfn, swap_bit))
			return false;
	}
	return true;
}

/*
 * Where a range's start or base is no multiple of a block, offsets carry within blocks:
 * to bit @bit once in 2^@bit frames, too seldom for 64 blocks to show it. Where @ways
 * take turns, that is once in @ways times as many. All carries to one bit change the same
 * bits, so the frames on both sides of the first few tell of all.
 */
static bool nothing_across(const struct sol_map *map, const struct sol_range *r,
			   u32 swap_bit, u32 bit, u32 ways)
{
	u64 base = r->base >> sol_frame_shift(map), step = (u64)ways << bit;
	u64 at = (base / step | 1) * step, first, end, pfn;
	u32 tries;

	whole_blocks(map, r, swap_bit, &first, &end);
	for (tries = 0; tries < 3; tries++, at += 2 * step) {
		pfn = (r->start >> sol_frame_shift(map)) + at - base;
		/* The first may be below the base, and in no block. */
		if (at <= base || pfn <= first || pfn >= end)
			continue;
		if (!one_cell(map, pfn, swap_bit) || !one_cell(map, pfn - 1, swap_bit))
			return false;
	}
	return true;
}

/* As nothing_across(), of all bits; carries within a block are not rare, but for ways. */
static bool nothing_carries(const struct sol_map *map, const struct sol_range *r,
			    u32 swap_bit, u32 ways)
{
	u64 frames = (r->base + (r->end - r->start)) >> sol_frame_shift(map);
	u32 bit;

	for (bit = ways > 1 ? 0 : swap_bit + 3; frames / ways >> bit; bit++)
		if (!nothing_across(map, r, swap_bit, bit, ways))
			return false;
	return true;
}

/*
 * Frames are asked, and not the map's functions: bases of ranges and ways that are
 * interleaved decide on colours, too.
 */
static bool decides_nothing(const struct sol_map *map, u32 swap_bit)
{
	u32 i;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];
		u32 ways = map->layout[r->layout].ways;

		if (!nothing_within(map, r, swap_bit) ||
		    !nothing_carries(map, r, swap_bit, 1))
			return false;
		if (ways > 1 && !nothing_carries(map, r, swap_bit, ways))
			return false;
	}
	return true;
}

u32 sol_frames_swap_bit(const struct sol_map *map)
{
	u32 swap_bit;

	for (swap_bit = 3; swap_bit + 3 <= SOL_SLOT_BITS; swap_bit++)
		if (decides_nothing(map, swap_bit))
			return swap_bit;
	return 0;
}

/* ---- Lists ---- */

static struct sol_cell *cell_of(const struct sol_frames *fs, u32 tag)
{
	return &fs->cell[tag & SOL_TAG_CELL];
}

/* Put @pfn on a stack of its cell; @tag holds the cell and kept flags. */
static void push(struct sol_frames *fs, struct sol_frame *frame, u32 pfn,
		 u32 tag, bool zero)
{
	struct sol_cell *cell = cell_of(fs, tag);

	frame->link = cell->head[zero];
	SOL_WRITE(frame->tag, tag | SOL_TAG_LISTED | (zero ? SOL_TAG_ZERO : 0));
	cell->head[zero] = pfn;
	SOL_WRITE(cell->listed[zero], cell->listed[zero] + 1);
}

/* The stack is not empty. */
static u32 pop(struct sol_frames *fs, struct sol_cell *cell, bool zero)
{
	u32 pfn = cell->head[zero];

	cell->head[zero] = sol_frames_at(fs, pfn)->link;
	SOL_WRITE(cell->listed[zero], cell->listed[zero] - 1);
	return pfn;
}

/* Frame @pfn becomes foreign. */
static void disown(struct sol_frames *fs, u32 pfn)
{
	struct sol_frame *frame = sol_frames_at(fs, pfn);

	frame->link = 0;
	SOL_WRITE(frame->tag, 0);
	SOL_WRITE(fs->owned[pfn], 0);
}

void sol_frames_add(struct sol_frames *fs, u32 cell, u32 pfn, bool zero)
{
	push(fs, sol_frames_at(fs, pfn), pfn, cell, zero);
	SOL_WRITE(fs->owned[pfn], 1);
}

void sol_frames_adopt(struct sol_frames *fs, u32 cell, u32 pfn)
{
	fs->cell[cell].used++;
	sol_frames_use(fs, cell, pfn, 0);
	SOL_WRITE(fs->owned[pfn], 1);
}

u32 sol_frames_get(struct sol_frames *fs, u32 cell, u32 owner, bool zero,
		   bool *is_zero)
{
	u32 pfn;

	if (!sol_frames_hold(fs, cell, zero, &pfn, 1, is_zero))
		return SOL_NO_FRAME;
	sol_frames_use(fs, cell, pfn, owner);
	return pfn;
}

u32 sol_frames_hold(struct sol_frames *fs, u32 cell, bool zero, u32 *pfn, u32 n,
		    bool *is_zero)
{
	struct sol_cell *c = &fs->cell[cell];
	bool list = zero;
	u32 at, got = 0;

	if (c->head[list] == SOL_NO_FRAME)
		list = !list;
	for (at = c->head[list]; got < n && at != SOL_NO_FRAME; got++) {
		struct sol_frame *frame = sol_frames_at(fs, at);

		pfn[got] = at;
		at = frame->link;
		SOL_WRITE(frame->tag,
			  (frame->tag & SOL_TAG_CELL) | SOL_TAG_HELD);
		frame->link = 0;
	}
	c->head[list] = at;
	SOL_WRITE(c->listed[list], c->listed[list] - got);
	c->used += got;
	*is_zero = list;
	return got;
}

u32 sol_frames_put(struct sol_frames *fs, u32 pfn, bool zero)
{
	struct sol_frame *frame = sol_frames_at(fs, pfn);
	u32 owner = frame->link;

	cell_of(fs, frame->tag)->used--;
	push(fs, frame, pfn, frame->tag & SOL_TAG_CELL, zero);
	return owner;
}

u32 sol_frames_forget(struct sol_frames *fs, u32 pfn)
{
	struct sol_frame *frame = sol_frames_at(fs, pfn);
	u32 owner = frame->link;

	cell_of(fs, frame->tag)->used--;
	disown(fs, pfn);
	return owner;
}

u32 sol_frames_drain(struct sol_frames *fs, u32 cell)
{
	struct sol_cell *c = &fs->cell[cell];
	bool list = c->head[0] == SOL_NO_FRAME;
	u32 pfn;

	if (c->head[list] == SOL_NO_FRAME)
		return SOL_NO_FRAME;
	pfn = pop(fs, c, list);
	disown(fs, pfn);
	return pfn;
}

/* ---- Evicting ---- */

struct evict {
	struct sol_frames *fs;
	u32 cell;
	u32 start;
	u32 end;
	void (*gone)(void *ctx, u32 pfn);
	void *ctx;
};

/*
 * Walk stack @zero behind frame @before (SOL_NO_FRAME: from its head). Returns
 * steps left; at 0 the mark says where to go on.
 */
static u32 evict_stack(const struct evict *e, bool zero, u32 before, u32 budget)
{
	struct sol_frames *fs = e->fs;
	struct sol_cell *c = &fs->cell[e->cell];

	while (budget) {
		u32 *link = before == SOL_NO_FRAME ?
				    &c->head[zero] :
				    &sol_frames_at(fs, before)->link;
		u32 pfn = *link;

		if (pfn == SOL_NO_FRAME)
			return budget;
		budget--;
		if (pfn < e->start || pfn >= e->end) {
			before = pfn;
			continue;
		}
		*link = sol_frames_at(fs, pfn)->link;
		disown(fs, pfn);
		SOL_WRITE(c->listed[zero], c->listed[zero] - 1);
		e->gone(e->ctx, pfn);
	}
	c->mark = before;
	c->mark_list = zero;
	return 0;
}

/*
 * The mark is valid although the lock was released: frames leave a stack only at its
 * head. If the marked frame is still listed, the frames behind it are those that were
 * behind it before. If it was handed out meanwhile, so were all frames before it, and
 * the walk begins at the head.
 */
u32 sol_frames_evict(struct sol_frames *fs, u32 cell, u32 start, u32 end,
		     u32 budget, void (*gone)(void *ctx, u32 pfn), void *ctx)
{
	struct evict e = {
		.fs = fs, .cell = cell, .start = start, .end = end,
		.gone = gone, .ctx = ctx,
	};
	struct sol_cell *c = &fs->cell[cell];
	u32 before = c->mark, tag = 0;
	bool zero = c->mark_list;

	c->mark = SOL_NO_FRAME;
	c->mark_list = 0;
	if (before != SOL_NO_FRAME)
		tag = sol_frames_at(fs, before)->tag;
	if (!(tag & SOL_TAG_LISTED) || (tag & SOL_TAG_CELL) != cell ||
	    !(tag & SOL_TAG_ZERO) == zero)
		before = SOL_NO_FRAME;
	if (!zero) {
		budget = evict_stack(&e, false, before, budget);
		before = SOL_NO_FRAME;
	}
	if (budget)
		budget = evict_stack(&e, true, before, budget);
	return budget;
}
