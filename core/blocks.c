// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Blocks: how large an aligned block of frames stays within given bank sets.
 * Decides whether a colour set allows huge pages: controller-only colours do,
 * single banks do not.
 *
 * Locking: none.
 */
#include "derive.h"

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

/* Largest order that @range's edges and the carries of its base allow. */
static u32 edge_order(const struct sol_map *map, u32 range, u32 order)
{
	const struct sol_range *r = &map->range[range];
	u64 edges = r->start ^ r->base;

	if (range && r[-1].end == r->start)
		edges |= r->start;
	if (range + 1 < map->n_ranges && r[1].start == r->end)
		edges |= r->end;
	while (order && edges & ((1ull << (SOL_FRAME_SHIFT + order)) - 1))
		order--;
	return order;
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
	u32 order = 9, i, k;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];

		if (!node_has_any(map, sets, r->node))
			continue;
		order = edge_order(map, i, order);
		for (k = 0; k < order; k++)
			if (bit_leaves(map, sets, r->node, r->layout,
				       SOL_FRAME_SHIFT + k))
				order = k;
	}
	return order;
}
