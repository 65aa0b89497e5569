/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Inside core/: what the parser asks of the algebra. */
#ifndef SOLOIST_DERIVE_H
#define SOLOIST_DERIVE_H

#include "addrmap.h"

/**
 * struct sol_map_lines - where the statements of a map stand in its text
 * @layout: by layout, the line on which it began
 * @range: by range, its line
 */
struct sol_map_lines {
	u32 layout[SOL_MAX_LAYOUTS];
	u32 range[SOL_MAX_RANGES];
};

/**
 * sol_map_check() - check the statements of a map together
 * @map: has ranges, layouts and LLC functions; gets its LLC colours
 * @lines: of @map
 * @err: the line and what is wrong, filled on failure
 * Return: 0, or -EINVAL if ranges, layouts and functions contradict each other.
 */
int sol_map_check(struct sol_map *map, const struct sol_map_lines *lines, struct sol_err *err);

/**
 * sol_map_derive() - fill the derived members of a map
 * @map: has ranges, layouts and LLC functions
 * @line_of: by layout, the line of the text on which it began
 * @err: the line and what is wrong, filled on failure
 * Return: 0, or -EINVAL if ranges, layouts and functions contradict each other.
 */
int sol_map_derive(struct sol_map *map, const u32 *line_of,
		   struct sol_err *err);

/**
 * sol_derive_llc() - fill the LLC colours of a map
 * @map: has its LLC functions
 */
void sol_derive_llc(struct sol_map *map);

/**
 * sol_layout_reach() - bits that offsets within a layout can have set
 * @map: has ranges and layouts
 * @layout: 0 to n_layouts - 1
 * Return: a mask over the normalised offset, over all ranges of the layout.
 */
u64 sol_layout_reach(const struct sol_map *map, u32 layout);

/* As many frames as there can be. */
#define SOL_ANY_ORDER	(SOL_MAX_ADDR_BITS - SOL_MIN_FRAME_SHIFT)

/**
 * sol_range_order() - the blocks in which bank set and LLC colour are linear
 * @map: has its LLC colours
 * @range: of @map
 *
 * Up to this order both bank set and LLC colour are linear functions of the low
 * bits of an aligned block of frames.
 *
 * Return: 0 to SOL_ANY_ORDER, log2 of frames.
 */
u32 sol_range_order(const struct sol_map *map, const struct sol_range *range);

/**
 * sol_derive_ties() - fill the ties of a map, and which ranges are large
 * @map: has all other derived members
 */
void sol_derive_ties(struct sol_map *map);

/**
 * sol_low_zeros() - number of the lowest bit set
 * @x: not 0
 * Return: 0 to 63.
 */
static inline u32 sol_low_zeros(u64 x)
{
	return __builtin_ctzll(x);
}

/**
 * sol_top_bit() - number of the highest bit set
 * @x: not 0
 * Return: 0 to 63.
 */
static inline u32 sol_top_bit(u64 x)
{
	return 63 - __builtin_clzll(x);
}

/**
 * sol_contribution() - what one address bit adds to a field
 * @mask: masks of the field's bits, the low one first
 * @n: how many, at most 32
 * @bit: number of the address bit, 0 to 63
 * Return: the field's value for an address in which only @bit is set.
 */
static inline u32 sol_contribution(const u64 *mask, u32 n, u32 bit)
{
	u32 value = 0, i;

	for (i = 0; i < n; i++)
		value |= (u32)(mask[i] >> bit & 1) << i;
	return value;
}

#endif /* SOLOIST_DERIVE_H */
