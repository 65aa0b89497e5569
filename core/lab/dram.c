// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Whole DRAM addresses: decoding by the map's functions, and encoding by
 * solving them.
 *
 * Locking: none; a map does not change once it is built.
 */
#include "dram.h"

#include "../map/ways.h"

/* Functions of one layout that an address must satisfy. */
#define MAX_ROWS	(SOL_MAX_BANK_BITS + SOL_MAX_ROW_BITS + SOL_MAX_COL_BITS)
#define RHS		(1ull << 63)	/* right-hand side of an equation */

static u32 field_get(const u64 *mask, u32 n, u64 offset)
{
	u32 value = 0, i;

	for (i = 0; i < n; i++)
		value |= (u32)sol_parity64(offset & mask[i]) << i;
	return value;
}

static u32 printed_get(const u64 *mask, const u8 *at, u32 n, u64 offset)
{
	u32 value = 0, i;

	for (i = 0; i < n; i++)
		value |= (u32)sol_parity64(offset & mask[i]) << at[i];
	return value;
}

int sol_map_decode(const struct sol_map *map, u64 addr, struct sol_dram *dram)
{
	const struct sol_range *range = sol_map_range(map, addr);
	const struct sol_layout *l;
	u64 offset;
	u32 way;

	if (!range)
		return -ERANGE;
	l = &map->layout[range->layout];
	offset = sol_normalise(map, range->layout,
			       addr - range->start + range->base, &way);
	dram->node = range->node;
	dram->channel = way * (map->n_channels >> map->way_bits);
	dram->channel += field_get(l->channel.mask, l->channel.n, offset);
	dram->rank = field_get(l->rank.mask, l->rank.n, offset);
	dram->chip_select = dram->rank + l->chip_select;
	dram->bank = field_get(l->bank.mask, l->bank.n, offset);
	dram->row = printed_get(l->row, l->row_at, l->n_row, offset);
	dram->column = printed_get(l->col, l->col_at, l->n_col, offset);
	dram->color = dram->node * map->n_channels + dram->channel;
	dram->color = dram->color * map->n_ranks + dram->rank;
	dram->color = dram->color * map->n_banks + dram->bank;
	return 0;
}

/* ---- Encoding: solve the layout's functions for the offset ---- */

/* Equations mask . offset = value's bits; false: value needs more bits. */
static bool add_field(u64 *row, u32 *n, const struct sol_field *field,
		      u32 value)
{
	u32 i;

	if (value >> field->n)
		return false;
	for (i = 0; i < field->n; i++)
		row[(*n)++] = field->mask[i] | (value >> i & 1 ? RHS : 0);
	return true;
}

static bool add_printed(u64 *row, u32 *n, const u64 *mask, const u8 *at,
			u32 bits, u32 value)
{
	u32 i;

	for (i = 0; i < bits; i++) {
		row[(*n)++] = mask[i] | (value >> at[i] & 1 ? RHS : 0);
		value &= ~(1u << at[i]);
	}
	return !value;
}

/*
 * Gauss-Jordan elimination, pivots from the highest bit down. What stays free
 * is 0: bits within the line only, and no equations contradict each other; the
 * parser saw to both.
 */
static u64 solve(u64 *row, u32 n)
{
	u64 pivots = 0, offset = 0;
	u32 done = 0, i;
	int bit;

	for (bit = SOL_MAX_ADDR_BITS - 1; bit >= 0; bit--) {
		for (i = done; i < n && !(row[i] >> bit & 1); i++)
			;
		if (i == n)
			continue;
		if (i != done) {
			u64 swap = row[i];

			row[i] = row[done];
			row[done] = swap;
		}
		for (i = 0; i < n; i++)
			if (i != done && row[i] >> bit & 1)
				row[i] ^= row[done];
		pivots |= 1ull << bit;
		done++;
	}
	/* Row i belongs to the i-th pivot from above. */
	for (bit = SOL_MAX_ADDR_BITS - 1, i = 0; i < done; bit--)
		if (pivots >> bit & 1 && row[i++] & RHS)
			offset |= 1ull << bit;
	return offset;
}

/* One layout's address for @dram, within one of the node's ranges. */
static int encode_range(const struct sol_map *map,
			const struct sol_range *range,
			const struct sol_dram *dram, u64 *addr)
{
	const struct sol_layout *l = &map->layout[range->layout];
	u32 plain = map->n_channels >> map->way_bits;
	u32 way = dram->channel / plain, n = 0;
	u64 row[MAX_ROWS], offset;

	if (!l->n_row || !l->n_col)
		return -EDOM;
	if (way >> map->way_bits || !sol_has_way(l, way) ||
	    !add_field(row, &n, &l->channel, dram->channel % plain) ||
	    !add_field(row, &n, &l->rank, dram->rank) ||
	    !add_field(row, &n, &l->bank, dram->bank) ||
	    !add_printed(row, &n, l->row, l->row_at, l->n_row, dram->row) ||
	    !add_printed(row, &n, l->col, l->col_at, l->n_col, dram->column))
		return -ERANGE;
	offset = sol_denormalise(l, solve(row, n), way);
	if (offset < range->base ||
	    offset - range->base >= range->end - range->start)
		return -ERANGE;
	*addr = offset - range->base + range->start;
	return 0;
}

int sol_map_encode(const struct sol_map *map, const struct sol_dram *dram,
		   u64 *addr)
{
	int rc = -ERANGE;
	u32 i;

	for (i = 0; i < map->n_ranges; i++) {
		int one;

		if (map->range[i].node != dram->node)
			continue;
		one = encode_range(map, &map->range[i], dram, addr);
		if (!one)
			return 0;
		if (one == -EDOM)
			rc = one;
	}
	return rc;
}
