// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Blocks: how large an aligned block of frames stays within given bank sets.
 * Decides whether a colour set allows huge pages: controller-only colours do,
 * single banks do not.
 *
 * Locking: none.
 */
#include "derive.h"
#include "ways.h"

static bool has(const unsigned long *bits, u32 i)
{
	u32 width = 8 * sizeof(*bits);

	return bits[i / width] >> (i % width) & 1;
}

static bool node_has_any(const struct sol_map *map, const unsigned long *sets,
			 u32 node)
{
	u32 i;

	for (i = 0; i < 1u << map->set_bits; i++)
		if (has(sets, (node << map->set_bits) + i))
			return true;
	return false;
}

/* Do @a and the next range @b share an aligned block of 2^@shift bytes? */
static bool share_block(const struct sol_range *a, const struct sol_range *b,
			u32 shift)
{
	return (a->end - 1) >> shift == b->start >> shift;
}

/* Largest order that a range's edges and the carries of its base allow. */
static u32 edge_order(const struct sol_map *map, u32 range, u32 order)
{
	const struct sol_range *r = &map->range[range];

	for (; order; order--) {
		u32 shift = sol_frame_shift(map) + order;

		if ((r->start ^ r->base) & ((1ull << shift) - 1))
			continue;
		if (range && share_block(r - 1, r, shift))
			continue;
		if (range + 1 < map->n_ranges && share_block(r, r + 1, shift))
			continue;
		break;
	}
	return order;
}

/* Are all bank sets of the layout's ways on @node in @sets? */
static bool node_has_all(const struct sol_map *map, const unsigned long *sets,
			 u32 node)
{
	u32 i;

	for (i = 0; i < 1u << map->set_bits; i++) {
		u32 set = (node << map->set_bits) + i;

		if (!has(sets, set) && sol_map_set_exists(map, set))
			return false;
	}
	return true;
}

/* Does address bit @bit lead out of @sets on @node? */
static bool bit_leaves(const struct sol_map *map, const unsigned long *sets,
		       u32 node, u32 layout, u32 bit)
{
	u32 step = sol_contribution(map->set_mask[layout], map->set_bits, bit);
	u32 first = node << map->set_bits, i;

	if (!step)
		return false;
	for (i = 0; i < 1u << map->set_bits; i++)
		if (has(sets, first + i) && !has(sets, first + (i ^ step)))
			return true;
	return false;
}

u32 sol_map_block_order(const struct sol_map *map, const unsigned long *sets)
{
	u32 order = sol_huge_order(map), i, k;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];

		if (!node_has_any(map, sets, r->node))
			continue;
		order = edge_order(map, i, order);
		/* Beyond a granule are other ways, and carries. */
		if (map->layout[r->layout].ways > 1 &&
		    order > sol_way_shift(map, &map->layout[r->layout]) &&
		    !node_has_all(map, sets, r->node))
			order = sol_way_shift(map, &map->layout[r->layout]);
		for (k = 0; k < order; k++)
			if (bit_leaves(map, sets, r->node, r->layout,
				       sol_frame_shift(map) + k))
				order = k;
	}
	return order;
}
