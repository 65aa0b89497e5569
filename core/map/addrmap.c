// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Address map: looking up. How a map is built stands in parse.c (text) and
 * bankset.c (algebra); everything here reads a finished one.
 *
 * CAMC's Algorithm 1 reads the registers of one vendor at every look-up; here
 * a map is data: a range gives node and base, then each bit of a field is the
 * parity of some offset bits. For the two questions that the page allocator
 * asks, cell and colour of a frame, the parities are tabulated by nibbles.
 *
 * Locking: none; a map does not change once it is built.
 */
#include "addrmap.h"
#include "ways.h"

const struct sol_range *sol_map_range(const struct sol_map *map, u64 addr)
{
	u32 low = 0, high = map->n_ranges;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (addr >= map->range[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == map->n_ranges || addr < map->range[low].start)
		return NULL;
	return &map->range[low];
}

static u32 table_get(const struct sol_table *table, u64 pfn)
{
	u32 value = 0, i;

	pfn >>= table->shift;
	for (i = 0; i < table->n; i++, pfn >>= 4)
		value ^= table->part[i][pfn & 15];
	return value;
}

static u32 field_color(const struct sol_field *field, u64 offset)
{
	u32 value = 0, i;

	for (i = 0; i < field->n; i++)
		value |= (u32)sol_parity64(offset & field->mask[i]) << i;
	return value;
}

/* The part of the bank colour that offset bits within a page contribute. */
static u32 color_within(const struct sol_map *map, u32 layout, u64 offset)
{
	const struct sol_layout *l = &map->layout[layout];
	u32 color;

	offset &= (1ull << sol_frame_shift(map)) - 1;
	if (!offset)
		return 0;
	color = field_color(&l->channel, offset);
	color = color * map->n_ranks + field_color(&l->rank, offset);
	return color * map->n_banks + field_color(&l->bank, offset);
}

int sol_map_color(const struct sol_map *map, u64 pfn,
		  struct sol_frame_color *color)
{
	u32 shift = sol_frame_shift(map);
	u64 addr = pfn << shift;
	const struct sol_range *range;
	u64 frame;
	u32 way;

	if (pfn >> (SOL_MAX_ADDR_BITS - shift))
		return -ERANGE;
	range = sol_map_range(map, addr);
	if (!range)
		return -ERANGE;
	addr += range->base - range->start;
	/* A page may begin within a normalised one. */
	frame = sol_normalise(map, range->layout, addr, &way);
	color->node = range->node;
	color->color = (u32)range->node << map->bank_bits |
		       way << (map->bank_bits - map->way_bits);
	color->color ^= color_within(map, range->layout, frame);
	frame = sol_normal_frame(map, range->layout, addr >> shift, &way);
	color->color ^= table_get(&map->color_of[range->layout], frame);
	color->bank_set = (u32)range->node << map->set_bits |
			  way << map->set_way_at |
			  table_get(&map->set_of[range->layout], frame);
	color->llc = table_get(&map->llc_of, pfn);
	color->cell = color->bank_set * map->n_llc + color->llc;
	return 0;
}

u32 sol_map_cell(const struct sol_map *map, u64 pfn)
{
	u32 shift = sol_frame_shift(map);
	u64 addr = pfn << shift;
	const struct sol_range *range;
	u64 frame;
	u32 set, way;

	if (pfn >> (SOL_MAX_ADDR_BITS - shift))
		return SOL_NO_CELL;
	range = sol_map_range(map, addr);
	if (!range)
		return SOL_NO_CELL;
	frame = sol_normal_frame(map, range->layout,
				 (addr + range->base - range->start) >> shift,
				 &way);
	set = (u32)range->node << map->set_bits | way << map->set_way_at |
	      table_get(&map->set_of[range->layout], frame);
	return set << map->n_llc_bits | table_get(&map->llc_of, pfn);
}

/* Frames from @frame of @range on that are surely of another way. */
static u64 frames_to_way(const struct sol_map *map,
			 const struct sol_range *range, u64 frame, u32 want)
{
	const struct sol_layout *l = &map->layout[range->layout];
	u32 shift = sol_way_shift(map, l), way, steps;

	if (!map->way_bits || map->ways_joined)
		return 0;
	if (!sol_has_way(l, want))
		return ((range->base + (range->end - range->start)) >>
			sol_frame_shift(map)) - frame;
	sol_normal_frame(map, range->layout, frame, &way);
	if (way == want)
		return 0;
	/* To the start of the granule that comes so many later. */
	steps = l->turn_of[want] + l->ways - l->turn_of[way];
	return (((frame >> shift) + steps % l->ways) << shift) - frame;
}

u64 sol_map_next(const struct sol_map *map, u32 cell, u64 pfn, u64 end)
{
	u32 set = cell >> map->n_llc_bits & ((1u << map->set_bits) - 1);
	u32 want = set >> map->set_way_at, shift = sol_frame_shift(map);

	while (pfn < end) {
		u64 addr = pfn << shift;
		const struct sol_range *range = sol_map_range(map, addr);

		if (!range)
			return end;
		addr += range->base - range->start;
		pfn += frames_to_way(map, range, addr >> shift, want);
		if (pfn < end && sol_map_cell(map, pfn) == cell)
			return pfn;
		pfn++;
	}
	return end;
}
