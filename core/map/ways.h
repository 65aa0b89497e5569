/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Interleaving over a number of ways: from an offset to its way and the
 * normalised offset, and back.
 *
 * Division is by a reciprocal. With m = 2^64 / ways, rounded up, the error
 * m * ways - 2^64 is at most ways < 2^6, and x * error < 2^58 for all x below
 * 2^52: the high half of x * m is x / ways, exactly (Granlund and Montgomery,
 * Division by Invariant Integers using Multiplication, PLDI 1994, theorem 4.2).
 */
#ifndef SOLOIST_WAYS_H
#define SOLOIST_WAYS_H

#include "structs.h"

/**
 * sol_way_shift() - the frames of a granule
 * @map: of @l
 * @l: layout
 * Return: log2 of frames; 0 for a granule of at most one frame.
 */
static inline u32 sol_way_shift(const struct sol_map *map,
				const struct sol_layout *l)
{
	u32 frame = sol_frame_shift(map);

	return l->granule > frame ? l->granule - frame : 0;
}

/**
 * sol_normalise() - from an offset to its way and normalised offset
 * @map: has its derived members
 * @layout: 0 to n_layouts - 1
 * @offset: within the node, bytes, below 2^52
 * @way: the way, filled
 * Return: the normalised offset, bytes.
 */
static inline u64 sol_normalise(const struct sol_map *map, u32 layout,
				u64 offset, u32 *way)
{
	const struct sol_layout *l = &map->layout[layout];
	u64 granule, of_way;

	*way = l->way_of[0];
	if (l->ways < 2)
		return offset;
	granule = offset >> l->granule;
	of_way = sol_mul_high(granule, map->per_ways[layout]);
	*way = l->way_of[granule - of_way * l->ways];
	return of_way << l->granule | (offset & ((1ull << l->granule) - 1));
}

/**
 * sol_denormalise() - the inverse of sol_normalise()
 * @l: layout
 * @normal: normalised offset, bytes
 * @way: one of the layout's
 * Return: the offset within the node, bytes.
 */
static inline u64 sol_denormalise(const struct sol_layout *l, u64 normal,
				  u32 way)
{
	if (l->ways < 2)
		return normal;
	return ((normal >> l->granule) * l->ways + l->turn_of[way])
		<< l->granule |
	       (normal & ((1ull << l->granule) - 1));
}

/**
 * sol_normal_frame() - sol_normalise() for a frame
 * @map: has its derived members
 * @layout: 0 to n_layouts - 1
 * @frame: of the node, offset >> sol_frame_shift()
 * @way: the way as bank sets count it, filled; 0 if frames touch several ways
 * Return: the normalised page that @frame is part of.
 */
static inline u64 sol_normal_frame(const struct sol_map *map, u32 layout,
				   u64 frame, u32 *way)
{
	const struct sol_layout *l = &map->layout[layout];
	u32 shift = sol_way_shift(map, l);
	u64 granule, of_way;

	*way = map->ways_joined ? 0 : l->way_of[0];
	if (l->ways < 2)
		return frame;
	granule = frame >> shift;
	of_way = sol_mul_high(granule, map->per_ways[layout]);
	if (!map->ways_joined)
		*way = l->way_of[granule - of_way * l->ways];
	return of_way << shift | (frame & ((1ull << shift) - 1));
}

/**
 * sol_has_way() - whether a layout has a way
 * @l: layout
 * @way: 0 to SOL_MAX_WAYS
 * Return: whether memory of @l lies in @way.
 */
static inline bool sol_has_way(const struct sol_layout *l, u32 way)
{
	return l->ways ? l->turn_of[way] != SOL_NO_TURN : !way;
}

#endif /* SOLOIST_WAYS_H */
