// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Maps for tests: from files, and random ones. */
#include "check.h"

void load_map_of(struct sol_map *map, const char *name, u32 frame_shift)
{
	char path[4096], text[4096];
	struct sol_err err;
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), MAPS "/%s.map", name);
	file = fopen(path, "r");
	CHECK(file);
	len = fread(text, 1, sizeof(text), file);
	fclose(file);
	if (sol_map_parse(map, text, len, frame_shift, &err))
		test_fail(path, err.line, "%s", err.text);
}

void load_map(struct sol_map *map, const char *name)
{
	load_map_of(map, name, 12);
}

/*
 * Functions of @bits offset bits that together are invertible: a random
 * permutation of the bits, then bits mixed in from functions further on.
 */
static void random_functions(u64 *mask, u32 n, u32 lowest)
{
	u32 i, j;

	for (i = 0; i < n; i++)
		mask[i] = 1ull << (lowest + i);
	for (i = n; i-- > 1;) {
		u64 swap = mask[i];

		j = below(i + 1);
		mask[i] = mask[j];
		mask[j] = swap;
	}
	for (i = 0; i < n; i++)
		for (j = i + 1; j < n; j++)
			if (once_in(n))
				mask[i] ^= mask[j];
}

static const u64 *take(const u64 *mask, struct sol_field *field, u32 n)
{
	u32 i;

	field->n = n;
	for (i = 0; i < n; i++)
		field->mask[i] = mask[i];
	return mask + n;
}

static void random_layout(struct sol_layout *l, u32 width)
{
	u64 all[32];
	const u64 *next = all;
	u32 n = width - 6, i;

	random_functions(all, n, 6);
	next = take(next, &l->channel, below(3));
	next = take(next, &l->rank, below(2));
	next = take(next, &l->bank, 1 + below(4));
	n -= next - all;
	l->n_col = 2 + below(n / 2);
	l->n_row = n - l->n_col;
	for (i = 0; i < l->n_col; i++) {
		l->col[i] = *next++;
		l->col_at[i] = i + (i > 3);
	}
	for (i = 0; i < l->n_row; i++) {
		l->row[i] = *next++;
		l->row_at[i] = l->n_row - 1 - i;
	}
	l->chip_select = below(4);
}

/* So many bytes of whole frames. */
static u64 less_than_half(const struct sol_map *map, u64 size)
{
	return below(size >> (map->frame_shift + 1)) << map->frame_shift;
}

/* Ranges of one node that cover its offsets up to @size, with holes. */
static u64 random_ranges(struct sol_map *map, u32 node, u32 layout, u64 at,
			 u64 size)
{
	u64 base = 0, align = 1ull << (map->frame_shift + below(19 - map->frame_shift));
	u32 parts = 1 + below(3);

	while (base < size) {
		struct sol_range *r = &map->range[map->n_ranges++];
		u64 bytes = (1 + below(size / align)) * align;

		if (!--parts || bytes > size - base)
			bytes = size - base;
		*r = (struct sol_range){ .start = at, .end = at + bytes,
					 .base = base, .node = node,
					 .layout = layout };
		base += bytes;
		at += bytes + (once_in(2) ? below(8) * align : 0);
	}
	return at;
}

/*
 * Interleave @l over 3 ways and more, or over some that are named; granules
 * from a line to 64 KiB.
 */
static void random_ways(struct sol_layout *l)
{
	static const u8 ways[] = { 3, 5, 6, 7, 10, 12 };
	bool named = once_in(2);
	u32 i, way;

	l->ways = named ? 1 + below(6) : ways[below(6)];
	l->granule = 6 + below(11);
	memset(l->turn_of, SOL_NO_TURN, sizeof(l->turn_of));
	for (i = 0; i < l->ways; i++) {
		for (way = i; named && l->turn_of[way] != SOL_NO_TURN;)
			way = below(9);
		l->way_of[i] = way;
		l->turn_of[way] = i;
	}
}

/*
 * All nodes have memory of both layouts. Rows keep their places apart: the
 * second one's offsets have bit @width, as have no others.
 */
static void random_regions(struct sol_map *map, u32 nodes, u32 width, u64 at)
{
	u32 i, k, n;

	for (i = 0; i < 2; i++) {
		struct sol_layout *l = &map->layout[i];

		l->row_at[l->n_row] = 31;
		l->row[l->n_row++] = 1ull << width;
	}
	for (i = 0; i < 2 * nodes; i++) {
		struct sol_layout *l = &map->layout[i % 2];
		u64 size = (1ull << width) * (l->ways ? l->ways : 1);
		u64 part = size;

		if (once_in(2))
			part -= less_than_half(map, size);
		n = map->n_ranges;
		at = random_ranges(map, i / 2, i % 2, at, part);
		for (k = n; i % 2 && k < map->n_ranges; k++)
			map->range[k].base += size;
	}
}

void random_map(struct sol_map *map)
{
	u32 nodes = 1 + below(3), layouts = 1 + below(2), i;
	bool interleaved = once_in(3), regions = layouts == 2 && once_in(2);
	u32 width = 20 + below(interleaved ? 2 : 5);
	u64 at = once_in(2) ? below(64) << 16 : 0;
	struct sol_err err;
	struct sol_map made;
	char text[8192];
	size_t len;

	memset(&made, 0, sizeof(made));
	memcpy(made.name, "random", 6);
	made.line = 64;
	made.n_layouts = layouts;
	made.frame_shift = once_in(2) ? 12 : 14 + 2 * below(2);
	for (i = 0; i < layouts; i++)
		random_layout(&made.layout[i], width);
	for (i = 0; interleaved && i < layouts; i++)
		if (i == 0 || once_in(2))
			random_ways(&made.layout[i]);
	if (regions)
		random_regions(&made, nodes, width, at);
	for (i = 0; !regions && i < nodes; i++) {
		struct sol_layout *l = &made.layout[i % layouts];
		u64 size = (1ull << width) * (l->ways ? l->ways : 1);

		/* More than half, so that all bits are used. */
		if (once_in(2))
			size -= less_than_half(&made, size);
		at = random_ranges(&made, i, i % layouts, at, size);
		if (once_in(2))
			at = (at + (1 << 20)) >> 20 << 20;
	}
	if (!regions && nodes < layouts)
		made.n_layouts = nodes;
	made.n_llc_functions = interleaved ? 0 : below(5);
	random_functions(made.llc, made.n_llc_functions, 12 + below(3));
	len = sol_map_print(&made, text, sizeof(text));
	CHECK(len < sizeof(text));
	if (sol_map_parse(map, text, len, made.frame_shift, &err)) {
		printf("%s", text);
		test_fail(__FILE__, __LINE__, "line %u: %s", err.line,
			  err.text);
	}
}
