// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The map as canonical text: what sol_map_parse() reads back the same. */
#include "addrmap.h"
#include "../text/text.h"

static void put_mask(struct sol_text *text, u64 mask)
{
	const char *before = "";
	u32 bit;

	for (bit = 0; bit < SOL_MAX_ADDR_BITS; bit++)
		if (mask >> bit & 1) {
			sol_text_put(text, "%s%u", before, bit);
			before = "^";
		}
}

static void put_masks(struct sol_text *text, const char *what, const u64 *mask,
		      const u8 *at, u32 n)
{
	u32 i, next = 0;

	if (!n)
		return;
	sol_text_put(text, "%s", what);
	for (i = 0; i < n; i++, next++) {
		sol_text_put(text, " ");
		if (at && at[i] != next) {
			next = at[i];
			sol_text_put(text, "@%u:", next);
		}
		put_mask(text, mask[i]);
	}
	sol_text_put(text, "\n");
}

static void put_bits(struct sol_text *text, const char *what, u32 bits)
{
	u32 bit;

	if (!bits)
		return;
	sol_text_put(text, "%s", what);
	for (bit = 0; bit < 16; bit++)
		if (bits >> bit & 1)
			sol_text_put(text, " %u", bit);
	sol_text_put(text, "\n");
}

static void put_interleave(struct sol_text *text, const struct sol_layout *l)
{
	bool named = !(l->ways & (l->ways - 1));
	u32 i;

	if (!l->ways)
		return;
	sol_text_put(text, "interleave %u %u", (u32)l->ways, 1u << l->granule);
	for (i = 0; i < l->ways; i++)
		named |= l->way_of[i] != i;
	for (i = 0; named && i < l->ways; i++)
		sol_text_put(text, i ? " %u" : " on %u", (u32)l->way_of[i]);
	sol_text_put(text, "\n");
}

static void put_layout(struct sol_text *text, const struct sol_layout *l)
{
	sol_text_put(text, "layout\n");
	put_interleave(text, l);
	put_masks(text, "channel", l->channel.mask, NULL, l->channel.n);
	put_bits(text, "sub", l->sub);
	put_masks(text, "rank", l->rank.mask, NULL, l->rank.n);
	if (l->chip_select)
		sol_text_put(text, "cs %u\n", (u32)l->chip_select);
	put_masks(text, "bank", l->bank.mask, NULL, l->bank.n);
	put_bits(text, "bg", l->bg);
	put_masks(text, "row", l->row, l->row_at, l->n_row);
	put_masks(text, "col", l->col, l->col_at, l->n_col);
}

size_t sol_map_print(const struct sol_map *map, char *buf, size_t size)
{
	struct sol_text text = { .buf = buf, .size = size };
	u32 i;

	sol_text_put(&text, "soloist-map 1\n");
	if (map->name[0])
		sol_text_put(&text, "name %s\n", map->name);
	sol_text_put(&text, "line %u\n", map->line);
	put_masks(&text, "llc", map->llc, NULL, map->n_llc_functions);
	for (i = 0; i < map->n_layouts; i++)
		put_layout(&text, &map->layout[i]);
	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];

		sol_text_put(&text, "range %x %x node %u", r->start, r->end,
			     (u32)r->node);
		if (r->base)
			sol_text_put(&text, " base %x", r->base);
		if (map->n_layouts > 1)
			sol_text_put(&text, " layout %u", (u32)r->layout);
		sol_text_put(&text, "\n");
	}
	return text.len;
}
