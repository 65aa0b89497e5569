// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Checks of a map's statements together: each may be right alone and contradict another. A
 * refusal names the line of the range or layout.
 *
 * Locking: none. Nothing large on the stack.
 */
#include "derive.h"
#include "../text/text.h"

#define MAX_BLOCKS	4096	/* per range, for counting frames of cells */

struct check {
	struct sol_map *map;
	const struct sol_map_lines *lines;
	struct sol_err *err;
};

/* A line lies in one place: only columns may tell its bytes apart. */
static int check_within_line(const struct check *c, u32 layout)
{
	const struct sol_layout *l = &c->map->layout[layout];
	u64 low = c->map->line - 1, used = 0;
	u32 i;

	for (i = 0; i < SOL_MAX_FIELD_BITS; i++)
		used |= l->channel.mask[i] | l->rank.mask[i] | l->bank.mask[i];
	for (i = 0; i < l->n_row; i++)
		used |= l->row[i];
	if (used & low)
		return sol_refuse(c->err, c->lines->layout[layout], -EINVAL,
				  "layout %u: a channel, rank, bank or row function uses bits within a line of %u bytes",
				  layout, c->map->line);
	for (i = 0; i < l->n_col; i++)
		if (l->col[i] & low && l->col[i] & ~low)
			return sol_refuse(c->err, c->lines->layout[layout],
					  -EINVAL,
					  "layout %u: col function %u mixes bits within a line of %u bytes with others",
					  layout, i, c->map->line);
	return 0;
}

static int check_layouts(const struct check *c)
{
	const struct sol_map *map = c->map;
	u32 i;
	int rc;

	for (i = 0; i < map->n_ranges; i++)
		if (map->range[i].layout >= map->n_layouts)
			return sol_refuse(c->err, c->lines->range[i], -EINVAL,
					  "range: layout %u is not given, only %u",
					  map->range[i].layout,
					  map->n_layouts);
	for (i = 0; i < map->n_layouts; i++) {
		const struct sol_layout *l = &map->layout[i];

		if (!sol_layout_reach(map, i))
			return sol_refuse(c->err, c->lines->layout[i], -EINVAL,
					  "layout %u: no range uses it", i);
		if (l->bg >> l->bank.n)
			return sol_refuse(c->err, c->lines->layout[i], -EINVAL,
					  "bg: bank has only %u functions",
					  l->bank.n);
		if (l->sub >> l->channel.n)
			return sol_refuse(c->err, c->lines->layout[i], -EINVAL,
					  "sub: channel has only %u functions",
					  l->channel.n);
		if (l->ways && map->n_llc_functions)
			return sol_refuse(c->err, c->lines->layout[i], -EINVAL,
					  "layout %u: interleave and llc can't stand in one map: no XOR ties a division to a cache colour",
					  i);
		if (l->ways && l->granule < sol_top_bit(map->line))
			return sol_refuse(c->err, c->lines->layout[i], -EINVAL,
					  "layout %u: its granule is less than a line of %u bytes",
					  i, map->line);
		rc = check_within_line(c, i);
		if (rc)
			return rc;
	}
	return 0;
}

/* Do two ranges name the same DRAM? */
static bool ranges_alias(const struct sol_range *a, const struct sol_range *b)
{
	return a->node == b->node && a->layout == b->layout &&
	       a->base < b->base + (b->end - b->start) &&
	       b->base < a->base + (a->end - a->start);
}

static int check_ranges(const struct check *c)
{
	const struct sol_map *map = c->map;
	u32 i, j;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];
		u64 blocks = (r->end - r->start) >>
			     (sol_frame_shift(map) + sol_range_order(map, r));

		for (j = 0; j < i; j++)
			if (ranges_alias(&map->range[j], r))
				return sol_refuse(c->err, c->lines->range[i],
						  -EINVAL,
						  "range %x: its offsets from base %x on overlap those of the range in line %u, both would be the same DRAM",
						  r->start, r->base,
						  c->lines->range[j]);
		if (blocks > MAX_BLOCKS)
			return sol_refuse(c->err, c->lines->range[i], -EINVAL,
					  "range %x: base %x must agree with it in the address bits that the llc functions use",
					  r->start, r->base);
	}
	return 0;
}

static int check_llc(const struct check *c)
{
	struct sol_map *map = c->map;
	u64 basis[SOL_MAX_LLC_BITS];
	u32 i, j;

	for (i = 0; i < map->n_llc_functions; i++) {
		basis[i] = map->llc[i];
		for (j = 0; j < i; j++)
			if ((basis[i] ^ basis[j]) < basis[i])
				basis[i] ^= basis[j];
		if (!basis[i])
			return sol_refuse(c->err, 0, -EINVAL,
					  "llc function %u follows from those before it",
					  i);
	}
	sol_derive_llc(map);
	return 0;
}

int sol_map_check(struct sol_map *map, const struct sol_map_lines *lines, struct sol_err *err)
{
	const struct check c = { .map = map, .lines = lines, .err = err };
	int rc;

	if (!map->n_layouts)
		return sol_refuse(err, 0, -EINVAL, "expected at least one `layout`");
	if (!map->n_ranges)
		return sol_refuse(err, 0, -EINVAL, "expected at least one `range`");
	rc = check_layouts(&c);
	if (!rc)
		rc = check_llc(&c);
	if (!rc)
		rc = check_ranges(&c);
	return rc;
}
