/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Inside core/: what the parser asks of the algebra. */
#ifndef SOLOIST_DERIVE_H
#define SOLOIST_DERIVE_H

#include "addrmap.h"

/*
 * Fill the derived members of @map from ranges, layouts and LLC functions.
 * -EINVAL with words if these contradict each other; @line_of[i] is the line
 * that layout i began on, for the message.
 */
int sol_map_derive(struct sol_map *map, const u32 *line_of,
		   struct sol_err *err);

/* Bits that addresses within @layout can have set, over all its ranges. */
u64 sol_layout_reach(const struct sol_map *map, u32 layout);

#define SOL_ANY_ORDER	(SOL_MAX_ADDR_BITS - SOL_FRAME_SHIFT)

/*
 * Order (in frames) up to which aligned blocks of the range have both bank
 * sets and LLC colours as linear functions of their low bits.
 */
u32 sol_range_order(const struct sol_map *map, const struct sol_range *range);

/* Fill @map's ties and `large`; the bank sets are there. */
void sol_derive_ties(struct sol_map *map);

/* Zero bits below the lowest one; x is not 0. */
static inline u32 sol_low_zeros(u64 x)
{
	return __builtin_ctzll(x);
}

/* Number of the highest bit set; x is not 0. */
static inline u32 sol_top_bit(u64 x)
{
	return 63 - __builtin_clzll(x);
}

/* The contribution of address bit @bit to the functions mask[n]. */
static inline u32 sol_contribution(const u64 *mask, u32 n, u32 bit)
{
	u32 value = 0, i;

	for (i = 0; i < n; i++)
		value |= (u32)(mask[i] >> bit & 1) << i;
	return value;
}

#endif /* SOLOIST_DERIVE_H */
