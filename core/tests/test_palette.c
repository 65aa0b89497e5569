// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Owners of colours, and automatic assignment. */
#include "check.h"
#include "colors/palette.h"

#define MAX_SETS	4096

static struct sol_map map;
static struct sol_palette palette;

/* A colour set with its own memory. */
struct owner {
	struct sol_colors colors;
	unsigned long sets[SOL_LONGS(MAX_SETS)];
	unsigned long llc[SOL_LONGS(4096)];
};

static struct sol_err err;

static void init(struct owner *owner)
{
	memset(owner, 0, sizeof(*owner));
	owner->colors.sets = owner->sets;
	owner->colors.llc = owner->llc;
}

static void new_palette(void)
{
	CHECK(map.n_bank_sets <= MAX_SETS);
	free(palette.set);
	sol_palette_init(&palette, &map, malloc(sol_palette_bytes(&map)));
}

/* Parse lists into a fresh owner; "" leaves that side free. */
static void give(struct owner *owner, const char *sets, const char *llc)
{
	init(owner);
	CHECK_EQ(sol_list_parse(sets, strlen(sets), map.n_bank_sets,
				owner->sets, &err), 0);
	CHECK_EQ(sol_list_parse(llc, strlen(llc), map.n_llc, owner->llc,
				&err), 0);
	owner->colors.by_bank = *sets;
	owner->colors.by_llc = *llc;
}

static u32 count(const unsigned long *bits, u32 n)
{
	u32 i, sum = 0;

	for (i = 0; i < n; i++)
		sum += sol_bit(bits, i);
	return sum;
}

#define REFUSED(call, code, words)					\
	do {								\
		CHECK_EQ(call, code);					\
		if (!strstr(err.text, words))				\
			test_fail(__FILE__, __LINE__, "\"%s\"", err.text); \
	} while (0)

TEST(shareable_owners_share)
{
	struct owner a, b;

	load_map(&map, "opteron-6128");
	new_palette();
	give(&a, "0-3", "");
	give(&b, "2-5", "");
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	CHECK_EQ(sol_palette_change(&palette, NULL, &b.colors, &err), 0);
	CHECK_EQ(palette.set[1].owners, 1);
	CHECK_EQ(palette.set[2].owners, 2);
	CHECK_EQ(palette.set[5].owners, 1);
	CHECK_EQ(sol_palette_change(&palette, &a.colors, NULL, &err), 0);
	CHECK_EQ(palette.set[2].owners, 1);
	CHECK_EQ(sol_palette_change(&palette, &b.colors, NULL, &err), 0);
	CHECK_EQ(palette.set[2].owners, 0);
}

TEST(exclusive_owners_are_alone)
{
	struct owner a, b, c;

	load_map(&map, "opteron-6128");
	new_palette();
	give(&a, "4-7", "");
	a.colors.exclusive = true;
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	give(&b, "0-4", "");
	REFUSED(sol_palette_change(&palette, NULL, &b.colors, &err), -EBUSY,
		"bank set 4 belongs to an exclusive owner");
	CHECK_EQ(palette.set[0].owners, 0);
	give(&b, "0-3", "");
	CHECK_EQ(sol_palette_change(&palette, NULL, &b.colors, &err), 0);
	give(&c, "3", "");
	c.colors.exclusive = true;
	REFUSED(sol_palette_change(&palette, NULL, &c.colors, &err), -EBUSY,
		"bank set 3 has 1 other owner, an exclusive one must be alone");
	/* An owner does not stand in its own way. */
	give(&c, "5-9", "");
	c.colors.exclusive = true;
	CHECK_EQ(sol_palette_change(&palette, &a.colors, &c.colors, &err), 0);
	CHECK_EQ(palette.set[4].owners, 0);
	CHECK_EQ(palette.set[5].exclusive, 1);
	/* LLC colours count by themselves. */
	give(&a, "", "0-7");
	a.colors.exclusive = true;
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	give(&b, "20", "7");
	REFUSED(sol_palette_change(&palette, NULL, &b.colors, &err), -EBUSY,
		"LLC colour 7 belongs to an exclusive owner");
}

TEST(colors_without_a_page_are_refused)
{
	struct owner a;

	load_map(&map, "opteron-6128");
	new_palette();
	give(&a, "0", "8-31");
	REFUSED(sol_palette_change(&palette, NULL, &a.colors, &err), -EINVAL,
		"none of these bank sets can hold a page");
	give(&a, "0", "7-8");
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	CHECK_EQ(sol_colors_cells(&map, &a.colors, NULL, 0), 1);
	init(&a);
	a.colors.by_bank = true;
	REFUSED(sol_palette_change(&palette, NULL, &a.colors, &err), -EINVAL,
		"no bank set is named, of 64");
	init(&a);
	a.colors.by_llc = true;
	REFUSED(sol_palette_change(&palette, NULL, &a.colors, &err), -EINVAL,
		"no LLC colour is named, of 32");
}

TEST(cells_and_bytes_of_colors)
{
	struct owner a;
	u32 cell[8];

	load_map(&map, "opteron-6128");
	give(&a, "1,17", "9,12,3");
	CHECK_EQ(sol_colors_cells(&map, &a.colors, cell, 8), 4);
	CHECK_EQ(cell[0], 1 * 32 + 9);
	CHECK_EQ(cell[1], 1 * 32 + 12);
	CHECK_EQ(cell[2], 17 * 32 + 9);
	CHECK_EQ(cell[3], 17 * 32 + 12);
	/* 8 GiB of 16 bank sets, each going with 8 LLC colours. */
	CHECK_EQ(sol_colors_bytes(&map, &a.colors), 4 * (8ull << 30) / 128);
	give(&a, "1", "");
	CHECK_EQ(sol_colors_bytes(&map, &a.colors), (8ull << 30) / 16);
	init(&a);
	CHECK_EQ(sol_colors_bytes(&map, &a.colors), 32ull << 30);
	CHECK_EQ(sol_colors_cells(&map, &a.colors, NULL, 0), 512);
}

TEST(turns_visit_all_cells_bank_set_by_bank_set)
{
	u32 cell[512], n, i, at = 0, per_set, seen[512] = { 0 };
	struct owner a;

	load_map(&map, "opteron-6128");
	give(&a, "16-19", "");
	n = sol_colors_cells(&map, &a.colors, cell, 512);
	CHECK_EQ(n, 4 * 8);
	per_set = sol_cells_per_set(&map, cell, n);
	CHECK_EQ(per_set, 8);
	for (i = 0; i < n; i++, at = sol_cells_advance(at, n, per_set, 1)) {
		CHECK_EQ(cell[at] / 32, 16 + i % 4);
		CHECK_EQ(sol_cells_next(at, n, per_set),
			 sol_cells_advance(at, n, per_set, 1));
		CHECK_EQ(at, sol_cells_advance(0, n, per_set, i));
		seen[at]++;
	}
	CHECK_EQ(at, 0);
	for (i = 0; i < n; i++)
		CHECK_EQ(seen[i], 1);
	/* One cell of each set, one set, and uneven ones: as they come. */
	give(&a, "1,17", "9");
	n = sol_colors_cells(&map, &a.colors, cell, 512);
	CHECK_EQ(sol_cells_per_set(&map, cell, n), 1);
	give(&a, "3", "");
	n = sol_colors_cells(&map, &a.colors, cell, 512);
	CHECK_EQ(sol_cells_advance(6, n, sol_cells_per_set(&map, cell, n), 1), 7);
	CHECK_EQ(sol_cells_advance(7, n, sol_cells_per_set(&map, cell, n), 1), 0);
	give(&a, "0,1", "0-1,8");
	n = sol_colors_cells(&map, &a.colors, cell, 512);
	CHECK_EQ(n, 3);
	CHECK_EQ(sol_cells_per_set(&map, cell, n), 1);
	CHECK_EQ(sol_cells_advance(2, n, 1, 2), 1);
}

TEST(next_cell_is_one_turn)
{
	u32 per_set, sets, i;

	for (per_set = 1; per_set <= 9; per_set++)
		for (sets = 1; sets <= 9; sets++)
			for (i = 0; i < sets * per_set; i++)
				CHECK_EQ(sol_cells_next(i, sets * per_set,
							per_set),
					 sol_cells_advance(i, sets * per_set,
							   per_set, 1));
}

/* ---- Assignment ---- */

static void assign(struct owner *owner, struct sol_want want)
{
	init(owner);
	if (!want.allowed)
		want.allowed = ~0ull;
	if (sol_palette_assign(&palette, &want, &owner->colors, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	owner->colors.exclusive = true;
	CHECK_EQ(sol_palette_change(&palette, NULL, &owner->colors, &err), 0);
	CHECK_EQ(count(owner->sets, map.n_bank_sets), want.n_sets);
	CHECK_EQ(count(owner->llc, map.n_llc), want.n_llc);
}

/* The node that all of an owner's bank sets are on, or SOL_MAX_NODES. */
static u32 node_of(const struct owner *owner)
{
	u32 node = SOL_MAX_NODES, i;

	for (i = 0; i < map.n_bank_sets; i++) {
		if (!sol_bit(owner->sets, i))
			continue;
		if (node != SOL_MAX_NODES &&
		    node != sol_map_set_node(&map, i))
			return SOL_MAX_NODES;
		node = sol_map_set_node(&map, i);
	}
	return node;
}

TEST(assignment_prefers_near_nodes)
{
	struct owner a;
	u32 i;

	load_map(&map, "opteron-6128");
	new_palette();
	for (i = 0; i < 4; i++) {
		assign(&a, (struct sol_want){ .n_sets = 4, .near = 1 << 2 });
		CHECK_EQ(node_of(&a), 2);
	}
	/* Node 2 is full: elsewhere, or not at all. */
	assign(&a, (struct sol_want){ .n_sets = 4, .near = 1 << 2 });
	CHECK_EQ(node_of(&a), 0);
	init(&a);
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.n_sets = 1, .near = 1 << 2, .strict = true,
			.allowed = ~0ull }, &a.colors, &err), -ENOSPC,
		"1 bank sets wanted, 0 free; bank sets free on node 2: 0");
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.n_sets = 20, .allowed = 3 }, &a.colors, &err), 0, "");
	CHECK_EQ(node_of(&a), SOL_MAX_NODES);
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.n_sets = 29, .allowed = 3 }, &a.colors, &err),
		-ENOSPC,
		"29 bank sets wanted, 28 free; bank sets free on node 1: 16, node 0: 12");
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.n_sets = 1 }, &a.colors, &err), -ENOSPC,
		"no memory node is allowed");
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.allowed = 1 }, &a.colors, &err), -EINVAL,
		"at least one bank set");
}

/* Of the Opteron's bank sets every fourth goes with LLC colour 0. */
TEST(growth_goes_with_the_llc_colours_that_there_are)
{
	struct owner a, more;
	u32 i, n;

	load_map(&map, "opteron-6128");
	new_palette();
	give(&a, "0", "0");
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	for (n = 0; n < 3; n++) {
		struct sol_want want = { .n_sets = 1, .near = 1, .allowed = 1, .llc = a.llc };

		init(&more);
		CHECK_EQ(sol_palette_assign(&palette, &want, &more.colors, &err), 0);
		for (i = 0; i < map.n_bank_sets && !sol_bit(more.sets, i); i++)
			;
		CHECK(sol_map_cell_exists(&map, i, 0));
		init(&more);
		sol_bit_set(more.sets, i);
		more.colors.by_bank = true;
		CHECK_EQ(sol_palette_change(&palette, NULL, &more.colors, &err), 0);
	}
}

TEST(assignment_takes_the_least_used_node)
{
	struct owner a;
	u32 i;

	load_map(&map, "opteron-6128");
	new_palette();
	for (i = 0; i < 16; i++) {
		assign(&a, (struct sol_want){ .n_sets = 2 });
		CHECK_EQ(node_of(&a), i % 4);
	}
}

TEST(real_time_owners_have_their_own_controllers)
{
	struct owner a;
	u32 i, n;

	load_map(&map, "opteron-6128");
	new_palette();
	assign(&a, (struct sol_want){ .n_sets = 2, .realtime = true });
	CHECK_EQ(node_of(&a), 0);
	for (i = 1; i < 4; i++) {
		assign(&a, (struct sol_want){ .n_sets = 1 });
		CHECK_EQ(node_of(&a), i);
	}
	/* Others go on spreading over nodes 1 to 3, real-time ones over 0. */
	for (i = 0; i < 6; i++) {
		assign(&a, (struct sol_want){ .n_sets = 1 });
		CHECK_EQ(node_of(&a), 1 + i % 3);
		assign(&a, (struct sol_want){ .n_sets = 1, .realtime = true });
		CHECK_EQ(node_of(&a), 0);
	}
	/* Not enough nodes: meeting is better than nothing. */
	n = 16 - 8;
	assign(&a, (struct sol_want){ .n_sets = n, .realtime = true });
	CHECK_EQ(node_of(&a), 0);
	assign(&a, (struct sol_want){ .n_sets = 1, .realtime = true });
	CHECK(node_of(&a) != 0);
}

/* One node, three channels that are colours: a controller each. */
TEST(real_time_owners_have_their_own_channels)
{
	static const bool realtime[] = {
		true, false, true, false, false, true, false,
	};
	struct owner a;
	u32 i, set;

	load_map(&map, "three-channels");
	CHECK_EQ(map.set_bits - map.set_channel_at, 2);
	new_palette();
	for (i = 0; i < 7; i++) {
		assign(&a, (struct sol_want){ .n_sets = 5,
					      .realtime = realtime[i] });
		for (set = 0; set < map.n_bank_sets; set++)
			if (sol_bit(a.sets, set))
				CHECK_EQ(set >> 4 == 0, realtime[i]);
	}
	/* One set is left there: meeting is better than nothing. */
	assign(&a, (struct sol_want){ .n_sets = 2, .realtime = true });
	CHECK_EQ(count(a.sets, map.n_bank_sets), 2);
}

/* Owners by channel (three), rank (two) and bank group (two) of their sets. */
static void count_parts(const struct owner *a, u32 shift, u32 bits, u32 *n)
{
	u32 set;

	memset(n, 0, sizeof(*n) << bits);
	for (set = 0; set < map.n_bank_sets; set++)
		if (sol_bit(a->sets, set))
			n[set >> shift & ((1u << bits) - 1)]++;
}

/* Two channels, two ranks, four bank groups of two banks: all are colours. */
static const char four_levels[] =
	"soloist-map 1\nlayout\nchannel 12\nrank 13\nbank 14 15 16\nbg 1 2\n"
	"range 0 0x10000000\n";

TEST(sets_of_an_owner_spread)
{
	u32 of_channel[2], of_rank[4], of_group[32], want, i;
	struct owner a;

	CHECK_EQ(sol_map_parse(&map, four_levels, sizeof(four_levels) - 1,
			       12, &err), 0);
	CHECK_EQ(map.n_bank_sets, 32);
	for (want = 1; want <= 32; want++) {
		new_palette();
		assign(&a, (struct sol_want){ .n_sets = want });
		count_parts(&a, 4, 1, of_channel);
		count_parts(&a, 3, 2, of_rank);
		count_parts(&a, 1, 4, of_group);
		for (i = 0; i < 2; i++)
			CHECK_EQ(of_channel[i], (want + !i) / 2);
		for (i = 0; i < 4; i++)
			CHECK(of_rank[i] - want / 4 <= 1);
		for (i = 0; i < 16; i++)
			CHECK(of_group[i] - want / 16 <= 1);
	}
}

/* Four tasks of a set each: not on one channel beside an idle one. */
TEST(owners_spread_over_channels)
{
	u32 of_channel[2], of_rank[4], i;
	struct owner a, all;

	CHECK_EQ(sol_map_parse(&map, four_levels, sizeof(four_levels) - 1,
			       12, &err), 0);
	new_palette();
	init(&all);
	for (i = 0; i < 4; i++) {
		assign(&a, (struct sol_want){ .n_sets = 1 });
		all.sets[0] |= a.sets[0];
	}
	count_parts(&all, 4, 1, of_channel);
	CHECK_EQ(of_channel[0], 2);
	CHECK_EQ(of_channel[1], 2);
	count_parts(&all, 3, 2, of_rank);
	for (i = 0; i < 4; i++)
		CHECK_EQ(of_rank[i], 1);
}

/* A way that isn't there gets nothing, and those that are get the same. */
TEST(sets_spread_over_three_channels)
{
	u32 n[4], i, want;
	struct owner a;

	load_map(&map, "three-channels");
	for (want = 3; want <= 48; want += 3) {
		new_palette();
		assign(&a, (struct sol_want){ .n_sets = want });
		count_parts(&a, 4, 2, n);
		for (i = 0; i < 3; i++)
			CHECK_EQ(n[i], want / 3);
		CHECK_EQ(n[3], 0);
	}
}

/* Others avoid each channel that a real-time owner is on: it takes few. */
TEST(a_real_time_owner_is_on_few_channels)
{
	u32 n[2], of_b[2], rank[4];
	struct owner a, b;

	CHECK_EQ(sol_map_parse(&map, four_levels, sizeof(four_levels) - 1,
			       12, &err), 0);
	new_palette();
	assign(&a, (struct sol_want){ .n_sets = 4, .realtime = true });
	count_parts(&a, 4, 1, n);
	CHECK(n[0] == 0 || n[1] == 0);
	count_parts(&a, 3, 2, rank);
	CHECK(rank[0] == 2 || rank[2] == 2);
	/* Another joins it there, and goes where else it must. */
	assign(&b, (struct sol_want){ .n_sets = 4, .realtime = true });
	count_parts(&b, 4, 1, of_b);
	CHECK_EQ(!n[0], !of_b[0]);
	CHECK_EQ(!n[1], !of_b[1]);
	assign(&b, (struct sol_want){ .n_sets = 20, .realtime = true });
	count_parts(&b, 4, 1, of_b);
	CHECK(of_b[0] && of_b[1]);
}

static u64 busy_set_0(const void *ctx, u32 set)
{
	(void)ctx;
	return set == 0 ? 5 : 0;
}

TEST(busy_sets_are_not_free)
{
	struct owner a;

	load_map(&map, "opteron-6128");
	new_palette();
	palette.in_use = busy_set_0;
	assign(&a, (struct sol_want){ .n_sets = 1, .near = 1 });
	CHECK(!sol_bit(a.sets, 0));
	CHECK_EQ(node_of(&a), 0);
}

static u32 asked;

static u64 counts_questions(const void *ctx, u32 set)
{
	(void)ctx;
	asked++;
	return set == 0;
}

/* Each question about a set takes time, and a page fault waits for the answer. */
TEST(a_refusal_asks_few_times_for_each_set)
{
	struct owner a;
	struct sol_want want = { .near = 1, .allowed = ~0ull };

	load_map(&map, "opteron-6128");
	new_palette();
	palette.in_use = counts_questions;
	want.n_sets = map.n_bank_sets;
	asked = 0;
	init(&a);
	CHECK(sol_palette_assign(&palette, &want, &a.colors, &err));
	CHECK(asked <= 8 * map.n_bank_sets);
}

static void check_rectangle(const struct owner *o)
{
	u32 set, llc;

	for (set = 0; set < map.n_bank_sets; set++)
		for (llc = 0; llc < map.n_llc; llc++)
			if (sol_bit(o->sets, set) && sol_bit(o->llc, llc))
				CHECK(sol_map_cell_exists(&map, set, llc));
}

TEST(llc_colors_go_with_the_bank_sets)
{
	struct owner a[4];
	u32 i, k;

	load_map(&map, "opteron-6128");
	new_palette();
	for (i = 0; i < 4; i++) {
		assign(&a[i], (struct sol_want){ .n_sets = 4, .n_llc = 8,
						 .near = 1 });
		check_rectangle(&a[i]);
		CHECK_EQ(node_of(&a[i]), 0);
		/* Four owners, four classes. */
		for (k = 0; k < i; k++)
			CHECK(!(a[i].llc[0] & a[k].llc[0]));
	}
	init(&a[0]);
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.n_sets = 1, .n_llc = 1, .allowed = ~0ull },
			&a[0].colors, &err), -ENOSPC,
		"1 LLC colours wanted, at most 0 free ones go with one bank set");
	new_palette();
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.n_sets = 1, .n_llc = 9, .allowed = ~0ull },
			&a[0].colors, &err), -ENOSPC,
		"9 LLC colours wanted, at most 8");
	REFUSED(sol_palette_assign(&palette, &(struct sol_want){
			.n_sets = 5, .n_llc = 1, .allowed = 1 },
			&a[0].colors, &err), -ENOSPC,
		"5 bank sets that go with the same 1 LLC colours wanted, at most 4 free; bank sets free on node 0: 16");
	/* Over two nodes there are enough of a class. */
	assign(&a[0], (struct sol_want){ .n_sets = 5, .n_llc = 1 });
	check_rectangle(&a[0]);
}

/* The class with most free LLC colours, so that owners spread. */
TEST(llc_classes_are_used_evenly)
{
	struct owner a;

	load_map(&map, "opteron-6128");
	new_palette();
	give(&a, "", "0-3");
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	assign(&a, (struct sol_want){ .n_sets = 1, .n_llc = 2, .near = 1 });
	CHECK_EQ(a.sets[0], 1 << 1);
	CHECK_EQ(a.llc[0], 3 << 8);
	assign(&a, (struct sol_want){ .n_sets = 1, .n_llc = 2, .near = 1 });
	CHECK_EQ(a.sets[0], 1 << (8 + 2));	/* the other rank */
}

/* Node 0 ties each bank set to one LLC colour, node 1 ties none. */
TEST(classes_of_two_layouts_overlap)
{
	static const char text[] =
		"soloist-map 1\nllc 12 13\nlayout\nbank 12 13\n"
		"layout\nbank 14 15\nrange 0 0x1000000 layout 0\n"
		"range 0x1000000 0x2000000 node 1 layout 1\n";
	struct owner a;

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 12, &err), 0);
	new_palette();
	assign(&a, (struct sol_want){ .n_sets = 1, .n_llc = 1, .near = 1 });
	CHECK_EQ(node_of(&a), 0);
	assign(&a, (struct sol_want){ .n_sets = 1, .n_llc = 2, .near = 1 });
	CHECK_EQ(node_of(&a), 1);
}

/*
 * The second range's carries tie bank sets 0 and 1 to other LLC colours than
 * the first's, so that classes overlap. Only set 2 goes with three, and is on
 * the channel of the other kind's owner: it is looked at twice, and the second
 * time others have shown all its colours.
 */
TEST(a_class_met_before_is_found_again)
{
	static const char text[] =
		"soloist-map 1\nllc 14^15 15\nlayout\n"
		"channel 8^14^16 21\nrank 10\ncs 3\nbank 14\n"
		"row @6:8^15 @5:7^18 @4:13^20 @3:8 @2:7 @1:6 @0:13\n"
		"col 11 12 9^17 19 @5:17\nrange 0 0x330000\n"
		"range 0x334000 0x3f0000 base 0x330000\n";
	struct owner a;

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 12, &err), 0);
	new_palette();
	give(&a, "3", "");
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	assign(&a, (struct sol_want){ .n_sets = 1, .n_llc = 3,
				      .realtime = true });
	CHECK_EQ(a.sets[0], 1 << 2);
}

/* Free bank sets on the nodes of @nodes. */
static u32 free_on(u64 nodes)
{
	u32 i, n = 0;

	for (i = 0; i < map.n_bank_sets; i++)
		n += nodes >> sol_map_set_node(&map, i) & 1 &&
		     !palette.set[i].owners && sol_map_set_exists(&map, i);
	return n;
}

/* Is there a bank set with enough free LLC colours at all? */
static bool llc_possible(const struct sol_want *want)
{
	u32 set, llc, n;

	for (set = 0; set < map.n_bank_sets; set++) {
		if (palette.set[set].owners ||
		    !(want->allowed >> sol_map_set_node(&map, set) & 1))
			continue;
		for (llc = 0, n = 0; llc < map.n_llc; llc++)
			n += !palette.llc[llc].owners &&
			     sol_map_cell_exists(&map, set, llc);
		if (n >= want->n_llc)
			return true;
	}
	return false;
}

static void random_assignment(struct owner *o)
{
	struct sol_want want = {
		.n_sets = 1 + below(4),
		.n_llc = once_in(3) ? 1 + below(3) : 0,
		.near = once_in(2) ? 1 + below(7) : 0,
		.allowed = once_in(2) ? 7 : 1 + below(7),
		.strict = once_in(3),
		.realtime = once_in(3),
	};
	u64 nodes = want.allowed;
	u32 i;
	int rc;

	if (want.strict && want.near)
		nodes &= want.near;
	init(o);
	rc = sol_palette_assign(&palette, &want, &o->colors, &err);
	if (rc) {
		CHECK_EQ(rc, -ENOSPC);
		CHECK_EQ(count(o->sets, map.n_bank_sets), 0);
		CHECK_EQ(count(o->llc, map.n_llc), 0);
		if (!want.n_llc)
			CHECK(free_on(nodes) < want.n_sets);
		else if (want.n_sets == 1)
			CHECK(!(want.allowed = nodes, llc_possible(&want)));
		return;
	}
	CHECK_EQ(count(o->sets, map.n_bank_sets), want.n_sets);
	CHECK_EQ(count(o->llc, map.n_llc), want.n_llc);
	check_rectangle(o);
	for (i = 0; i < map.n_bank_sets; i++) {
		if (!sol_bit(o->sets, i))
			continue;
		CHECK_EQ(palette.set[i].owners, 0);
		CHECK(nodes >> sol_map_set_node(&map, i) & 1);
		CHECK(sol_map_set_exists(&map, i));
		/* Far only if near did not do. */
		if (want.near && !want.n_llc &&
		    !(want.near >> sol_map_set_node(&map, i) & 1))
			CHECK(free_on(nodes & want.near) < want.n_sets);
	}
	o->colors.exclusive = true;
	CHECK_EQ(sol_palette_change(&palette, NULL, &o->colors, &err), 0);
}

TEST(assignments_are_disjoint_and_possible)
{
	static struct owner owner[60];
	u32 n, i;

	for (n = 0; n < 100; n++) {
		random_map(&map);
		new_palette();
		memset(owner, 0, sizeof(owner));
		for (i = 0; i < 60; i++) {
			struct owner *o = &owner[below(60)];

			/* Every so often one goes, and another comes. */
			if (o->colors.exclusive)
				CHECK_EQ(sol_palette_change(&palette,
						&o->colors, NULL, &err), 0);
			random_assignment(o);
		}
		for (i = 0; i < 60; i++)
			if (owner[i].colors.exclusive)
				sol_palette_change(&palette, &owner[i].colors,
						   NULL, &err);
		for (i = 0; i < map.n_bank_sets; i++)
			CHECK_EQ(palette.set[i].owners, 0);
		for (i = 0; i < map.n_llc; i++)
			CHECK_EQ(palette.llc[i].owners, 0);
	}
}

/* A change that is refused leaves every count as it was. */
TEST(changes_are_all_or_nothing)
{
	struct owner a, b, c;
	struct sol_use before[64 + 32];
	u32 n, refused = 0;

	load_map(&map, "opteron-6128");
	new_palette();
	give(&a, "0-3,20", "0-3");
	give(&b, "8-15", "24");
	b.colors.exclusive = true;
	b.colors.realtime = true;
	CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors, &err), 0);
	CHECK_EQ(sol_palette_change(&palette, NULL, &b.colors, &err), 0);
	for (n = 0; n < 2000; n++) {
		init(&c);
		c.sets[0] = rnd() & rnd() & rnd() & rnd();
		c.llc[0] = rnd() & 0xffffffff;
		c.colors.by_bank = once_in(2);
		c.colors.by_llc = once_in(3);
		c.colors.exclusive = once_in(2);
		memcpy(before, palette.set, sizeof(before));
		if (sol_palette_change(&palette, &a.colors, &c.colors, &err)) {
			refused++;
		} else {
			CHECK_EQ(sol_palette_change(&palette, &c.colors, NULL,
						    &err), 0);
			CHECK_EQ(sol_palette_change(&palette, NULL, &a.colors,
						    &err), 0);
		}
		CHECK(!memcmp(before, palette.set, sizeof(before)));
	}
	CHECK(refused && refused < n);
}
