// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Cells: which pairs of bank set and LLC colour exist, and how many frames
 * each has. Counting goes by naturally aligned blocks: within one, the low
 * bits are free and everything else is fixed, so that the frames of a cell are
 * the solutions of a linear system, none or 2^(order - rank). The papers count
 * 128 * 32 pairs on the Opteron; only a quarter of them can hold a page.
 *
 * Locking: none; sol_derive_ties() is called while the map is built.
 */
#include "derive.h"
#include "ways.h"

#define MAX_FUNCTIONS	(SOL_MAX_BANK_BITS + SOL_MAX_LLC_BITS)

/* Functions of one layout and the values asked of them. */
struct query {
	u64 mask[MAX_FUNCTIONS];
	u32 frame;		/* log2 of the bytes of one */
	u32 n_sets;		/* first so many over the offset, then LLC */
	u32 n;
	u32 value;		/* bit i: function i shall be this */
};

static void query_functions(struct query *q, const struct sol_map *map,
			    u32 layout)
{
	u32 i;

	q->frame = sol_frame_shift(map);
	q->n_sets = map->set_bits;
	q->n = map->set_bits + map->n_llc_bits;
	q->value = 0;
	for (i = 0; i < q->n_sets; i++)
		q->mask[i] = map->set_mask[layout][i];
	for (; i < q->n; i++)
		q->mask[i] = map->llc_color[i - q->n_sets];
}

u32 sol_range_order(const struct sol_map *map, const struct sol_range *range)
{
	u64 differ = range->start ^ range->base, llc = 0;
	u32 i;

	for (i = 0; i < map->n_llc_bits; i++)
		llc |= map->llc_color[i];
	/* Start and base agree in all bits that LLC functions use. */
	if (!llc || !differ || sol_low_zeros(differ) > sol_top_bit(llc))
		return SOL_ANY_ORDER;
	return sol_low_zeros(differ) - sol_frame_shift(map);
}

/* ---- Counting ---- */

static u64 low_bits(const struct query *q, u32 order)
{
	return ((1ull << order) - 1) << q->frame;
}

/*
 * Frames that meet the query in the aligned block of 2^@order frames at
 * @offset, whose address is @addr.
 */
static u64 count_block(const struct query *q, u64 offset, u64 addr, u32 order)
{
	u64 low = low_bits(q, order), basis[MAX_FUNCTIONS];
	u32 rank = 0, i, j;

	for (i = 0; i < q->n; i++) {
		u64 at = (i < q->n_sets ? offset : addr) & ~low;
		u64 row = q->mask[i] & low;

		/* Bit 0 is below all frame bits: it carries the right side. */
		row |= sol_parity64(at & q->mask[i]) ^ (q->value >> i & 1);
		for (j = 0; j < rank; j++)
			if ((row ^ basis[j]) < row)
				row ^= basis[j];
		if (row == 1)
			return 0;
		if (row)
			basis[rank++] = row;
	}
	return 1ull << (order - rank);
}

/* Order of the largest aligned block at @offset, @left bytes before the end. */
static u32 block_order(const struct query *q, u64 offset, u64 left, u32 max_order)
{
	u32 order = sol_top_bit(left) - q->frame;

	if (order > max_order)
		order = max_order;
	if (offset && order > sol_low_zeros(offset) - q->frame)
		order = sol_low_zeros(offset) - q->frame;
	return order;
}

/* Frames of normalised pages [@from, @end) that meet the query. */
static u64 count_pages(const struct query *q, u64 from, u64 end)
{
	u64 at = from << q->frame, left, frames = 0;

	for (left = end > from ? (end - from) << q->frame : 0; left;) {
		u32 order = block_order(q, at, left, SOL_ANY_ORDER);
		u64 bytes = 1ull << (order + q->frame);

		frames += count_block(q, at, at, order);
		at += bytes;
		left -= bytes;
	}
	return frames;
}

/* Frames of the range in the way of @turn; q is for the bits below it. */
static u64 count_way(const struct query *q, const struct sol_map *map,
		     const struct sol_range *range, u32 turn)
{
	const struct sol_layout *l = &map->layout[range->layout];
	u32 shift = sol_way_shift(map, l);
	u64 first = range->base >> q->frame;
	u64 last = first + ((range->end - range->start) >> q->frame) - 1;
	u64 from = sol_div(first >> shift, l->ways), frames;
	u64 to = sol_div(last >> shift, l->ways);
	u64 granule = from * l->ways + turn, page, end;

	/* All rounds that the range touches, ... */
	frames = count_pages(q, from << shift, (to + 1) << shift);
	/* ... less what of the first round lies before it, ... */
	page = from << shift;
	end = page + (1ull << shift);
	if (granule < first >> shift)
		frames -= count_pages(q, page, end);
	else if (granule == first >> shift)
		frames -= count_pages(q, page, page +
				      (first & ((1ull << shift) - 1)));
	/* ... and of the last one behind it. */
	granule = to * l->ways + turn;
	page = to << shift;
	end = page + (1ull << shift);
	if (granule > last >> shift)
		frames -= count_pages(q, page, end);
	else if (granule == last >> shift)
		frames -= count_pages(q, page +
				      (last & ((1ull << shift) - 1)) + 1, end);
	return frames;
}

/* Frames of the range that meet the query, the range being interleaved. */
static u64 count_ways(struct query *q, const struct sol_map *map,
		      const struct sol_range *range)
{
	const struct sol_layout *l = &map->layout[range->layout];
	u32 turn;
	u32 wanted = q->value >> map->set_way_at;
	u64 frames = 0;

	/* Functions of the way's bits are empty: the way answers for them. */
	q->n = q->n_sets = map->set_way_at;
	q->value &= (1ull << map->set_way_at) - 1;
	if (!map->ways_joined)
		return sol_has_way(l, wanted) ?
		       count_way(q, map, range, l->turn_of[wanted]) : 0;
	for (turn = 0; turn < l->ways; turn++)
		frames += count_way(q, map, range, turn);
	return frames;
}

static u64 count_range(const struct query *q, const struct sol_range *range,
		       u32 max_order)
{
	u64 offset = range->base, left = range->end - range->start;
	u64 frames = 0;

	while (left) {
		u32 order = block_order(q, offset, left, max_order);
		u64 bytes = 1ull << (order + q->frame);

		frames += count_block(q, offset,
				      offset - range->base + range->start,
				      order);
		offset += bytes;
		left -= bytes;
	}
	return frames;
}

static u64 count_frames(const struct sol_map *map, u32 bank_set, u32 llc,
			bool any_llc)
{
	u32 node = sol_map_set_node(map, bank_set), i;
	u64 frames = 0;
	struct query q;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *range = &map->range[i];

		if (range->node != node)
			continue;
		query_functions(&q, map, range->layout);
		q.value = bank_set & ((1u << map->set_bits) - 1);
		if (any_llc)
			q.n = q.n_sets;
		else
			q.value |= llc << q.n_sets;
		if (map->layout[range->layout].ways) {
			frames += count_ways(&q, map, range);
			continue;
		}
		frames += count_range(&q, range, any_llc ? SOL_ANY_ORDER :
						 sol_range_order(map, range));
	}
	return frames;
}

u64 sol_map_cell_frames(const struct sol_map *map, u32 bank_set, u32 llc)
{
	return count_frames(map, bank_set, llc, false);
}

u64 sol_map_set_frames(const struct sol_map *map, u32 bank_set)
{
	return count_frames(map, bank_set, 0, true);
}

/* ---- Existence ---- */

static bool ties_allow(const struct sol_ties *ties, u32 set, u32 llc)
{
	u32 i;

	for (i = 0; i < ties->n; i++)
		if (sol_parity64(set & ties->set[i]) !=
		    sol_parity64(llc & ties->llc[i]))
			return false;
	return true;
}

/* Ties that name no LLC colour: bank sets that this layout lacks. */
static bool ties_allow_set(const struct sol_ties *ties, u32 set)
{
	u32 i;

	for (i = 0; i < ties->n; i++)
		if (!ties->llc[i] && sol_parity64(set & ties->set[i]))
			return false;
	return true;
}

static bool exists(const struct sol_map *map, u32 bank_set, u32 llc,
		   bool any_llc)
{
	u32 node = sol_map_set_node(map, bank_set), i;
	u32 set = bank_set & ((1u << map->set_bits) - 1);
	bool small = false;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_ties *ties = &map->ties[map->range[i].layout];

		if (map->range[i].node != node)
			continue;
		if (!(map->large >> i & 1))
			small = true;
		else if (any_llc ? ties_allow_set(ties, set) :
				   ties_allow(ties, set, llc))
			return true;
	}
	return small && count_frames(map, bank_set, llc, any_llc);
}

bool sol_map_cell_exists(const struct sol_map *map, u32 bank_set, u32 llc)
{
	return exists(map, bank_set, llc, false);
}

bool sol_map_set_exists(const struct sol_map *map, u32 bank_set)
{
	return exists(map, bank_set, 0, true);
}

/* ---- Deriving ---- */

/*
 * Reduce the functions, restricted to bits @keep, to a basis; returns its
 * size. Each combination that vanishes is a tie, if @ties is wanted.
 */
static u32 find_ties(const struct query *q, u64 keep, struct sol_ties *ties)
{
	u64 basis[MAX_FUNCTIONS];
	u32 made_of[MAX_FUNCTIONS], rank = 0, i, j;

	for (i = 0; i < q->n; i++) {
		u64 row = q->mask[i] & keep;
		u32 from = 1u << i;

		for (j = 0; j < rank; j++)
			if ((row ^ basis[j]) < row) {
				row ^= basis[j];
				from ^= made_of[j];
			}
		if (row) {
			basis[rank] = row;
			made_of[rank++] = from;
		} else if (ties) {
			ties->set[ties->n] = from & ((1u << q->n_sets) - 1);
			ties->llc[ties->n++] = from >> q->n_sets;
		}
	}
	return rank;
}

/* Has the range an aligned block of 2^@order frames? */
static bool has_block(const struct sol_map *map, const struct sol_range *range,
		      u32 order)
{
	u64 bytes = 1ull << (order + sol_frame_shift(map));
	u64 first = (range->base + bytes - 1) & ~(bytes - 1);

	return first + bytes <= range->base + (range->end - range->start);
}

void sol_derive_ties(struct sol_map *map)
{
	struct query q;
	u32 i, rank;

	for (i = 0; i < map->n_layouts; i++) {
		struct sol_ties *ties = &map->ties[i];

		query_functions(&q, map, i);
		rank = find_ties(&q, ~0ull, ties);
		while (find_ties(&q, low_bits(&q, ties->order), NULL) < rank)
			ties->order++;
	}
	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *range = &map->range[i];

		if (!map->layout[range->layout].ways &&
		    sol_range_order(map, range) == SOL_ANY_ORDER &&
		    has_block(map, range, map->ties[range->layout].order))
			map->large |= 1ull << i;
	}
}
