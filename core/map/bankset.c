// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Bank sets: which banks a frame's lines touch, by algebra over GF(2).
 *
 * A frame's lines differ in the page-offset bits only. What these bits add to
 * (channel, rank, bank) spans a space V, the same for every frame; the banks
 * of a frame are its first line's bank plus V, a coset. The papers print a
 * bank colour of the first line only, and two colours of one coset are the
 * same banks: hence ownership by coset.
 *
 * A coset's number: V's basis is reduced (each vector has its leading bit
 * alone), the colour is made 0 in all leading bits, and the other bits,
 * pushed together, are the number.
 *
 * Locking: none; all functions are pure but sol_map_derive(), which builds.
 */
#include "derive.h"
#include "ways.h"
#include "../text/text.h"

static u32 bits_of(u32 power)
{
	return sol_low_zeros(power);
}

/* The highest normalised offset below offset @end. */
static u64 last_normal(const struct sol_layout *l, u64 end)
{
	u64 granule = (end - 1) >> l->granule;

	if (!l->ways)
		return end - 1;
	/* Another way of the same round may reach to its granule's end. */
	return ((sol_div(granule, l->ways) + 1) << l->granule) - 1;
}

u64 sol_layout_reach(const struct sol_map *map, u32 layout)
{
	u64 reach = 0;
	u32 i;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];

		if (r->layout == layout)
			reach |= last_normal(&map->layout[layout],
					     r->base + (r->end - r->start));
	}
	return reach ? (2ull << sol_top_bit(reach)) - 1 : 0;
}

/* Masks of the bits of the bank colour within a node, low bit first. */
static void color_masks(const struct sol_map *map, u32 layout, u64 *mask)
{
	const struct sol_layout *l = &map->layout[layout];
	u32 rank_at = bits_of(map->n_banks);
	u32 channel_at = rank_at + bits_of(map->n_ranks);
	u32 i;

	for (i = 0; i < map->bank_bits; i++)
		mask[i] = 0;
	for (i = 0; i < l->bank.n; i++)
		mask[i] = l->bank.mask[i];
	for (i = 0; i < l->rank.n; i++)
		mask[rank_at + i] = l->rank.mask[i];
	for (i = 0; i < l->channel.n; i++)
		mask[channel_at + i] = l->channel.mask[i];
}

/* ---- The span V, in reduced echelon form ---- */

static u32 reduce(const struct sol_map *map, u32 color)
{
	u32 i;

	for (i = 0; i < map->n_span; i++)
		if (color >> sol_top_bit(map->span[i]) & 1)
			color ^= map->span[i];
	return color;
}

/* Add @color to V's basis: ascending, no vector has another's leading bit. */
static void span_add(struct sol_map *map, u32 color)
{
	u32 at, i;

	color = reduce(map, color);
	if (!color)
		return;
	for (at = map->n_span; at && map->span[at - 1] > color; at--)
		map->span[at] = map->span[at - 1];
	map->span[at] = color;
	map->n_span++;
	for (i = at + 1; i < map->n_span; i++)
		if (map->span[i] >> sol_top_bit(color) & 1)
			map->span[i] ^= color;
}

static u32 leading_bits(const struct sol_map *map)
{
	u32 lead = 0, i;

	for (i = 0; i < map->n_span; i++)
		lead |= 1u << sol_top_bit(map->span[i]);
	return lead;
}

u32 sol_map_color_set(const struct sol_map *map, u32 bc)
{
	u32 set = bc >> map->bank_bits, lead = leading_bits(map);
	u32 color = reduce(map, bc & ((1u << map->bank_bits) - 1));
	int i;

	for (i = map->bank_bits - 1; i >= 0; i--)
		if (!(lead >> i & 1))
			set = set << 1 | (color >> i & 1);
	return set;
}

/* Has any layout the way that @color is of? */
static bool has_way(const struct sol_map *map, u32 color)
{
	u32 way = (color & ((1u << map->bank_bits) - 1)) >>
		  (map->bank_bits - map->way_bits), i;

	for (i = 0; i < map->n_layouts; i++)
		if (sol_has_way(&map->layout[i], way))
			return true;
	return false;
}

u32 sol_map_set_colors(const struct sol_map *map, u32 bank_set, u32 *bc,
		       u32 max)
{
	u32 lead = leading_bits(map), n = 1u << map->n_span;
	u32 first = bank_set >> map->set_bits << map->bank_bits;
	u32 i, j, k;

	for (i = 0, k = 0; i < map->bank_bits; i++)
		if (!(lead >> i & 1))
			first |= (bank_set >> k++ & 1) << i;
	for (i = 0, k = 0; i < n; i++) {
		u32 color = first;

		for (j = 0; j < map->n_span; j++)
			if (i >> j & 1)
				color ^= map->span[j];
		if (!has_way(map, color))
			continue;
		if (k < max)
			bc[k] = color;
		k++;
	}
	return k;
}

/* ---- Deriving ---- */

/* Tabulate functions @mask over the bits of a frame number, from address bit @frame on. */
static void table_fill(struct sol_table *table, const u64 *mask, u32 n, u32 frame)
{
	u64 all = 0;
	u32 i, j, bit;

	for (i = 0; i < n; i++)
		all |= mask[i];
	all >>= frame;
	table->n = 0;
	table->shift = all ? sol_low_zeros(all) : 0;
	all >>= table->shift;
	for (i = 0; all >> (4 * i); i++, table->n++)
		for (j = 0; j < 16; j++)
			for (bit = 0; bit < 4; bit++)
				if (j >> bit & 1)
					table->part[i][j] ^= sol_contribution(mask,
						n, frame + bit + table->shift +
						   4 * i);
}

/*
 * Turn mask[n] into a basis with different leading bits, in place. Returns n,
 * or the index of the first that follows from those before it.
 */
static u32 echelon(u64 *mask, u32 n)
{
	u32 i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < i; j++)
			if ((mask[i] ^ mask[j]) < mask[i])
				mask[i] ^= mask[j];
		if (!mask[i])
			return i;
	}
	return n;
}

static const char *color_field(const struct sol_map *map, u32 bit, u32 *index)
{
	u32 rank_at = bits_of(map->n_banks);
	u32 channel_at = rank_at + bits_of(map->n_ranks);

	*index = bit;
	if (bit < rank_at)
		return "bank";
	*index = bit - rank_at;
	if (bit < channel_at)
		return "rank";
	*index = bit - channel_at;
	return "channel";
}

/* Every colour of the layout exists: its functions are independent. */
static int check_colors(const struct sol_map *map, u32 layout, u32 line,
			struct sol_err *err)
{
	u64 mask[SOL_MAX_BANK_BITS], used[SOL_MAX_BANK_BITS];
	u64 reach = sol_layout_reach(map, layout);
	u8 which[SOL_MAX_BANK_BITS];
	u32 n = 0, i, bad, index;
	const char *field;

	color_masks(map, layout, mask);
	for (i = 0; i < map->bank_bits; i++) {
		if (!mask[i])
			continue;	/* another layout has this bit */
		used[n] = mask[i] & reach;
		which[n++] = i;
	}
	bad = echelon(used, n);
	if (bad == n)
		return 0;
	field = color_field(map, which[bad], &index);
	if (!(mask[which[bad]] & reach))
		return sol_refuse(err, line, -EINVAL,
				  "%s function %u of this layout is always 0: its ranges only reach offset bit %u",
				  field, index, sol_top_bit(reach));
	return sol_refuse(err, line, -EINVAL,
			  "%s function %u of this layout follows from others: channel, rank and bank functions must be independent",
			  field, index);
}

static u32 field_masks(const struct sol_field *field, u64 *mask)
{
	u32 i;

	for (i = 0; i < field->n; i++)
		mask[i] = field->mask[i];
	return field->n;
}

/* Rows and columns given: every line's address can be found again. */
static int check_lines(const struct sol_map *map, u32 layout, u32 line,
		       struct sol_err *err)
{
	const struct sol_layout *l = &map->layout[layout];
	u64 mask[SOL_MAX_BANK_BITS + SOL_MAX_ROW_BITS + SOL_MAX_COL_BITS];
	u64 lost = sol_layout_reach(map, layout) & ~(u64)(map->line - 1);
	u32 n = 0, row, i, bad;

	if (!l->n_row || !l->n_col)
		return 0;
	n += field_masks(&l->channel, mask + n);
	n += field_masks(&l->rank, mask + n);
	n += field_masks(&l->bank, mask + n);
	for (row = n, i = 0; i < l->n_row; i++)
		mask[n++] = l->row[i];
	for (i = 0; i < l->n_col; i++)
		mask[n++] = l->col[i];
	bad = echelon(mask, n);
	if (bad < n) {
		bool is_row = bad < row + l->n_row;

		return sol_refuse(err, line, -EINVAL,
				  "%s function %u of this layout follows from the channel, rank, bank, row and col functions before it",
				  is_row ? "row" : "col",
				  is_row ? bad - row : bad - row - l->n_row);
	}
	for (i = 0; i < n; i++)
		lost &= ~(1ull << sol_top_bit(mask[i]));
	if (lost)
		return sol_refuse(err, line, -EINVAL,
				  "the functions of this layout don't determine offset bit %u: add it to row or col",
				  sol_low_zeros(lost));
	return 0;
}

/*
 * A bit within a frame has no say in its colour. One function with such a bit
 * is added to the others that have it, and given up.
 */
void sol_derive_llc(struct sol_map *map)
{
	u64 *color = map->llc_color;
	u32 n = map->n_llc_functions, bit, i, j;

	memcpy(color, map->llc, sizeof(map->llc));
	for (bit = 0; bit < sol_frame_shift(map); bit++) {
		for (i = 0; i < n && !(color[i] >> bit & 1); i++)
			;
		if (i == n)
			continue;
		for (j = i + 1; j < n; j++)
			if (color[j] >> bit & 1)
				color[j] ^= color[i];
		for (n--; i < n; i++)
			color[i] = color[i + 1];
		color[n] = 0;
	}
	map->n_llc_bits = n;
}

static void derive_sets(struct sol_map *map, u32 layout)
{
	u64 mask[SOL_MAX_BANK_BITS];
	u32 frame = sol_frame_shift(map), i, j;

	color_masks(map, layout, mask);
	table_fill(&map->color_of[layout], mask, map->bank_bits, frame);
	/* A set's bit: a colour bit, and the leading bits it is reduced by. */
	for (i = 0, j = 0; i < map->bank_bits; i++) {
		u64 *set = &map->set_mask[layout][j];
		u32 k;

		if (leading_bits(map) >> i & 1)
			continue;
		*set = mask[i];
		for (k = 0; k < map->n_span; k++)
			if (map->span[k] >> i & 1)
				*set ^= mask[sol_top_bit(map->span[k])];
		j++;
	}
	table_fill(&map->set_of[layout], map->set_mask[layout], map->set_bits,
		   frame);
}

static int derive_counts(struct sol_map *map, struct sol_err *err)
{
	u32 channel = 0, rank = 0, bank = 0, last_way = 0, i, j;
	u64 colors;

	for (i = 0; i < map->n_layouts; i++) {
		const struct sol_layout *l = &map->layout[i];

		if (l->channel.n > channel)
			channel = l->channel.n;
		if (l->rank.n > rank)
			rank = l->rank.n;
		if (l->bank.n > bank)
			bank = l->bank.n;
		for (j = 0; j < l->ways; j++)
			if (l->way_of[j] > last_way)
				last_way = l->way_of[j];
		if (l->ways > 1 && l->granule < sol_frame_shift(map))
			map->ways_joined = true;
		if (l->ways > 1)
			map->per_ways[i] = ~0ull / l->ways + 1;
	}
	map->way_bits = last_way ? sol_top_bit(last_way) + 1 : 0;
	channel += map->way_bits;
	map->n_nodes = 0;
	for (i = 0; i < map->n_ranges; i++)
		if (map->range[i].node >= map->n_nodes)
			map->n_nodes = map->range[i].node + 1;
	if (channel + rank + bank <= SOL_MAX_BANK_BITS)
		colors = (u64)map->n_nodes << (channel + rank + bank);
	else
		colors = ~0ull;
	if (colors > 1u << SOL_MAX_BANK_BITS)
		return sol_refuse(err, 0, -EINVAL,
				  "%u nodes of %u channel, %u rank and %u bank bits are too many: at most 65536 banks in all",
				  map->n_nodes, channel, rank, bank);
	map->n_channels = 1u << channel;
	map->n_ranks = 1u << rank;
	map->n_banks = 1u << bank;
	map->bank_bits = channel + rank + bank;
	map->n_colors = colors;
	map->n_llc = 1u << map->n_llc_bits;
	return 0;
}

/* How much apart are banks that differ in @bit of the bank colour? */
enum apart { APART_CHANNEL, APART_RANK, APART_GROUP, APART_BANK, APART_KINDS };

static enum apart apart_by(const struct sol_map *map, u32 bit)
{
	u32 rank_at = bits_of(map->n_banks), i;

	if (bit >= rank_at + bits_of(map->n_ranks))
		return APART_CHANNEL;
	if (bit >= rank_at)
		return APART_RANK;
	for (i = 0; i < map->n_layouts; i++)
		if (map->layout[i].bg >> bit & 1)
			return APART_GROUP;
	return APART_BANK;
}

/* The bits of a bank set in the order in which an owner's sets are spread. */
static void derive_spread(struct sol_map *map)
{
	u32 lead = leading_bits(map), kind, bit, set_bit, n = 0;

	for (kind = 0; kind < APART_KINDS; kind++)
		for (bit = set_bit = 0; bit < map->bank_bits; bit++) {
			if (lead >> bit & 1)
				continue;
			if (apart_by(map, bit) == kind)
				map->spread[n++] = set_bit;
			set_bit++;
		}
}

int sol_map_derive(struct sol_map *map, const u32 *line_of,
		   struct sol_err *err)
{
	u64 mask[SOL_MAX_BANK_BITS];
	u64 cells;
	u32 i, bit;
	int rc;

	rc = derive_counts(map, err);
	if (rc)
		return rc;
	for (i = 0; i < map->n_layouts; i++) {
		rc = check_colors(map, i, line_of[i], err);
		if (!rc)
			rc = check_lines(map, i, line_of[i], err);
		if (rc)
			return rc;
	}
	map->n_span = 0;
	for (i = 0; i < map->n_layouts; i++) {
		color_masks(map, i, mask);
		for (bit = 0; bit < sol_frame_shift(map); bit++)
			span_add(map, sol_contribution(mask, map->bank_bits, bit));
	}
	for (bit = 0; map->ways_joined && bit < map->way_bits; bit++)
		span_add(map, 1u << (map->bank_bits - 1 - bit));
	map->set_bits = map->bank_bits - map->n_span;
	map->set_way_at = map->set_bits -
			  (map->ways_joined ? 0 : map->way_bits);
	/* Channels that no page touches together are the high bits. */
	bit = bits_of(map->n_banks) + bits_of(map->n_ranks);
	map->set_channel_at = map->set_bits;
	for (i = bit; i < map->bank_bits; i++)
		if (!(leading_bits(map) >> i & 1))
			map->set_channel_at--;
	derive_spread(map);
	map->n_bank_sets = map->n_nodes << map->set_bits;
	for (i = 0; i < map->n_layouts; i++)
		derive_sets(map, i);
	table_fill(&map->llc_of, map->llc_color, map->n_llc_bits,
		   sol_frame_shift(map));
	cells = (u64)map->n_bank_sets << map->n_llc_bits;
	if (cells > SOL_MAX_CELLS)
		return sol_refuse(err, 0, -EINVAL,
				  "%u bank sets times %u LLC colours are more than %u cells",
				  map->n_bank_sets, map->n_llc, SOL_MAX_CELLS);
	map->n_cells = cells;
	sol_derive_ties(map);
	return 0;
}
