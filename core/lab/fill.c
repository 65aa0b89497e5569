// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Filling (CAMC Algorithms 2 and 3): take blocks from an allocator and
 * distribute their frames over the lists, whatever their colours.
 *
 * Differences from the paper: filling goes on until a wanted frame is found.
 * The printed algorithm takes one block of each order and then gives up, though
 * the buddy allocator may still have thousands, and its loop adds
 * 2^(order-1) + 1 frames of a block of 2^order.
 *
 * Locking: the caller's, by the source's lock and unlock.
 */
#include "fill.h"

static u32 find_listed(const struct sol_frames *fs, const u32 *cells, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		const struct sol_cell *c = &fs->cell[cells[i]];

		if (SOL_READ(c->listed[0]) || SOL_READ(c->listed[1]))
			break;
	}
	return i;
}

/* CAMC Algorithm 3: distribute a block over the lists. Returns frames added. */
static u32 split(struct sol_frames *fs, const struct sol_source *src, u64 first,
		 u32 order, bool zero)
{
	u32 added = 0;
	u64 pfn;

	for (pfn = first; pfn < first + (1ull << order); pfn++) {
		u32 cell = pfn < fs->n_frames ? sol_map_cell(fs->map, pfn) :
						SOL_NO_CELL;

		if (cell == SOL_NO_CELL) {
			if (src->back)
				src->back(src->ctx, pfn);
			continue;
		}
		if (src->lock)
			src->lock(src->ctx, cell);
		sol_frames_add(fs, cell, pfn, zero);
		if (src->unlock)
			src->unlock(src->ctx, cell);
		added++;
	}
	return added;
}

/* Largest order of which a block still fits into @frames. */
static u32 order_within(u32 frames, u32 max)
{
	while (max && frames >> max == 0)
		max--;
	return max;
}

u32 sol_frames_fill(struct sol_frames *fs, const struct sol_source *src,
		    const u32 *cells, u32 n, u32 *hit)
{
	u32 added = 0, taken = 0, i = 0, order;
	bool zero;
	s64 first;

	*hit = find_listed(fs, cells, n);
	while (*hit == n && i < n && taken < src->max_frames) {
		u32 node = sol_map_set_node(fs->map,
					    cells[i] >> fs->map->n_llc_bits);

		zero = false;
		first = src->block(src->ctx, node,
				   order_within(src->max_frames - taken,
						src->max_order),
				   &order, &zero);
		if (first < 0) {
			/* This node is exhausted: on with the next one. */
			while (i < n && sol_map_set_node(fs->map, cells[i] >>
						fs->map->n_llc_bits) == node)
				i++;
			continue;
		}
		added += split(fs, src, first, order, zero);
		taken += 1u << order;
		*hit = find_listed(fs, cells, n);
	}
	return added;
}
