// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Decoding, encoding and colours of addresses. */
#include "check.h"
#include "map/ways.h"
#include "text/numlist.h"
#include "opteron_rows.h"

static struct sol_map map;

/* Decode is right, and encode finds the line again. */
static void check_row(const struct opteron_row *row)
{
	struct sol_dram dram;
	u64 addr;

	CHECK_EQ(sol_map_decode(&map, row->addr, &dram), 0);
	CHECK_EQ(dram.node, row->node);
	CHECK_EQ(dram.channel, row->channel);
	CHECK_EQ(dram.chip_select, row->chip_select);
	CHECK_EQ(dram.rank, row->chip_select - 2);
	CHECK_EQ(dram.bank, row->bank);
	CHECK_EQ(dram.row, row->row);
	CHECK_EQ(dram.column, row->column);
	CHECK_EQ(dram.color, row->node * 32 + row->channel * 16 +
			     dram.rank * 8 + row->bank);
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), 0);
	CHECK_EQ(addr, row->addr & ~63ull);
}

TEST(opteron_rows_of_the_report)
{
	u32 n = sizeof(opteron_rows) / sizeof(opteron_rows[0]), i;

	load_map(&map, "opteron-6128");
	CHECK_EQ(n, 73);
	for (i = 0; i < n; i++)
		check_row(&opteron_rows[i]);
}

TEST(opteron_has_64_bank_sets_of_two_banks)
{
	u32 bc[4], set;

	load_map(&map, "opteron-6128");
	CHECK_EQ(map.n_colors, 128);
	CHECK_EQ(map.n_bank_sets, 64);
	CHECK_EQ(map.n_llc, 32);
	for (set = 0; set < 64; set++) {
		CHECK_EQ(sol_map_set_colors(&map, set, bc, 4), 2);
		/* The two differ in the channel. */
		CHECK_EQ(bc[0] ^ bc[1], 16);
		CHECK(bc[0] < bc[1]);
		CHECK_EQ(sol_map_set_node(&map, set), bc[0] / 32);
		CHECK_EQ(sol_map_color_set(&map, bc[0]), set);
		CHECK_EQ(sol_map_color_set(&map, bc[1]), set);
	}
}

TEST(opteron_without_interleaving_has_128_bank_sets)
{
	struct sol_dram low, high;
	u32 bc, set;

	load_map(&map, "opteron-6128-noninterleaved");
	CHECK_EQ(map.n_colors, 128);
	CHECK_EQ(map.n_bank_sets, 128);
	for (set = 0; set < 128; set++) {
		CHECK_EQ(sol_map_set_colors(&map, set, &bc, 1), 1);
		CHECK_EQ(bc, set);
	}
	/* Channel 1 is the upper half of a node. */
	CHECK_EQ(sol_map_decode(&map, 0x228000000, &low), 0);
	CHECK_EQ(sol_map_decode(&map, 0x328000000, &high), 0);
	CHECK_EQ(low.channel, 0);
	CHECK_EQ(high.channel, 1);
	CHECK_EQ(high.color, low.color + 16);
}

TEST(holes_are_refused)
{
	struct sol_frame_color color;
	struct sol_dram dram;
	u64 addr;

	load_map(&map, "opteron-6128");
	CHECK_EQ(sol_map_decode(&map, 0xd7ffffff, &dram), 0);
	CHECK_EQ(sol_map_decode(&map, 0xd8000000, &dram), -ERANGE);
	CHECK_EQ(sol_map_decode(&map, 0xffffffff, &dram), -ERANGE);
	CHECK_EQ(sol_map_decode(&map, 0x100000000, &dram), 0);
	CHECK_EQ(sol_map_decode(&map, 0x828000000, &dram), -ERANGE);
	CHECK_EQ(sol_map_decode(&map, ~0ull, &dram), -ERANGE);
	CHECK_EQ(sol_map_color(&map, 0xd8000, &color), -ERANGE);
	CHECK_EQ(sol_map_color(&map, ~0ull, &color), -ERANGE);
	CHECK_EQ(sol_map_color(&map, 1ull << 52, &color), -ERANGE);
	CHECK_EQ(sol_map_cell(&map, 0xd8000), SOL_NO_CELL);
	CHECK_EQ(sol_map_cell(&map, 1ull << 52), SOL_NO_CELL);
	/* Places that there are not. */
	CHECK_EQ(sol_map_decode(&map, 0, &dram), 0);
	dram.node = 4;
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), -ERANGE);
	dram.node = 0;
	dram.bank = 8;
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), -ERANGE);
	dram.bank = 0;
	dram.row = 1 << 14;
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), -ERANGE);
	dram.row = 0;
	dram.column = 1 << 10;
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), -ERANGE);
}

TEST(xeon_w3530_functions)
{
	struct sol_dram dram;
	u32 i;

	static const u32 bit[] = { 12, 13, 19, 20 };

	load_map(&map, "xeon-w3530");
	CHECK_EQ(map.n_colors, 16);
	CHECK_EQ(map.n_bank_sets, 16);
	CHECK_EQ(map.n_llc, 128);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(sol_map_decode(&map, 1ull << bit[i], &dram), 0);
		CHECK_EQ(dram.bank, 1u << i);
		CHECK_EQ(dram.row, 0);
	}
	/* Bits 12 and 13 make bank and LLC colour: a quarter of the pairs. */
	CHECK(sol_map_cell_exists(&map, 1, 1));
	CHECK(!sol_map_cell_exists(&map, 1, 0));
	CHECK(!sol_map_cell_exists(&map, 0, 3));
	CHECK_EQ(sol_map_cell_frames(&map, 1, 1), (1 << 20) / (16 * 32));
}

TEST(wide_functions_of_ddr5)
{
	struct sol_dram a, b;

	load_map(&map, "ddr5");
	/* Channel (6, 8) and bank (7, 9, 10) bits lie within the page. */
	CHECK_EQ(map.n_colors, 256);
	CHECK_EQ(map.n_span, 5);
	CHECK_EQ(map.n_bank_sets, 8);
	CHECK_EQ(sol_map_decode(&map, 0x40, &a), 0);
	CHECK_EQ(a.channel, 1);
	/* Row bit 18 alone turns the sub-channel; with bit 6 it does not. */
	CHECK_EQ(sol_map_decode(&map, 1 << 18, &a), 0);
	CHECK_EQ(sol_map_decode(&map, 1 << 18 | 0x40, &b), 0);
	CHECK_EQ(a.channel, 1);
	CHECK_EQ(b.channel, 0);
	/* The hole: 4 GiB goes on where 2 GiB ended. */
	CHECK_EQ(sol_map_decode(&map, 0x7fffffc0, &a), 0);
	CHECK_EQ(sol_map_decode(&map, 0x100000000, &b), 0);
	CHECK_EQ(b.row, a.row + 1);
}

TEST(two_layouts)
{
	struct sol_dram dram;
	u64 addr;

	load_map(&map, "asymmetric");
	CHECK_EQ(map.n_channels, 2);
	CHECK_EQ(map.n_ranks, 2);
	CHECK_EQ(map.n_colors, 32);
	/* V has the channel, though layout 1 has but one. */
	CHECK_EQ(map.n_bank_sets, 16);
	CHECK_EQ(sol_map_decode(&map, 0x140010000, &dram), 0);
	CHECK_EQ(dram.rank, 1);
	CHECK_EQ(dram.row, 1 << 15);
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), 0);
	CHECK_EQ(addr, 0x140010000);
}

TEST(a_map_without_rows_does_not_encode)
{
	static const char text[] =
		"soloist-map 1\nlayout\nbank 13 14\ncol 6 7\nrange 0 0x100000\n";
	struct sol_dram dram;
	struct sol_err err;
	u64 addr;

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 12, &err), 0);
	CHECK_EQ(sol_map_decode(&map, 0x60c0, &dram), 0);
	CHECK_EQ(dram.bank, 3);
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), -EDOM);
}

/* ---- Properties ---- */

static void check_line(const struct sol_frame_color *color, u64 addr)
{
	struct sol_dram dram, again;
	u64 back;

	CHECK_EQ(sol_map_decode(&map, addr, &dram), 0);
	CHECK_EQ(dram.node, color->node);
	CHECK(dram.color < map.n_colors);
	CHECK_EQ(sol_map_color_set(&map, dram.color), color->bank_set);
	/* Some maps have columns within the line, some have not. */
	CHECK_EQ(sol_map_encode(&map, &dram, &back), 0);
	CHECK((back ^ addr) < map.line);
	CHECK_EQ(sol_map_decode(&map, back, &again), 0);
	CHECK(!memcmp(&dram, &again, sizeof(dram)));
}

static void check_frame(u64 pfn)
{
	struct sol_frame_color color;
	struct sol_dram first;
	u32 i;

	if (sol_map_color(&map, pfn, &color)) {
		CHECK_EQ(sol_map_cell(&map, pfn), SOL_NO_CELL);
		CHECK_EQ(sol_map_decode(&map, pfn << map.frame_shift, &first), -ERANGE);
		return;
	}
	CHECK_EQ(sol_map_decode(&map, pfn << map.frame_shift, &first), 0);
	CHECK_EQ(color.color, first.color);
	CHECK_EQ(color.cell, sol_map_cell(&map, pfn));
	CHECK_EQ(color.cell, color.bank_set * map.n_llc + color.llc);
	CHECK(color.cell < map.n_cells);
	CHECK_EQ(sol_map_set_node(&map, color.bank_set), color.node);
	CHECK(sol_map_cell_exists(&map, color.bank_set, color.llc));
	for (i = 0; i < 4; i++)
		check_line(&color, pfn << map.frame_shift | below(1u << map.frame_shift));
}

TEST(decode_and_encode_are_inverse)
{
	u32 n, i;

	for (n = 0; n < 300; n++) {
		u64 end;

		random_map(&map);
		end = map.range[map.n_ranges - 1].end >> map.frame_shift;
		for (i = 0; i < 100; i++)
			check_frame(below(end + 16));
	}
}

TEST(decode_and_encode_are_inverse_on_known_maps)
{
	static const char *const name[] = {
		"opteron-6128", "opteron-6128-noninterleaved", "xeon-w3530",
		"ddr5", "asymmetric",
	};
	u32 n, i;

	for (n = 0; n < 5; n++) {
		load_map(&map, name[n]);
		for (i = 0; i < 3000; i++) {
			const struct sol_range *r =
				&map.range[below(map.n_ranges)];

			check_frame((r->start + below(r->end - r->start)) >> map.frame_shift);
		}
	}
}

#define MOST	2048	/* banks of a set of a random map */

/* A bank set is what a frame touches, no more. */
static void check_touched(u64 pfn, u32 set)
{
	u32 bc[MOST], k = sol_map_set_colors(&map, set, bc, MOST), i;
	bool seen[MOST] = { false };
	struct sol_dram dram;
	u64 line;

	for (line = 0; line < 1u << map.frame_shift; line += map.line) {
		CHECK_EQ(sol_map_decode(&map, (pfn << map.frame_shift) + line, &dram), 0);
		for (i = 0; i < k && bc[i] != dram.color; i++)
			;
		CHECK(i < k);
		seen[i] = true;
	}
	/* Of several ways, a frame need not touch all. */
	for (i = 0; !map.ways_joined && i < k; i++)
		CHECK(seen[i]);
}

/* ---- Frames of more than 4 KiB ---- */

/* The same map, of frames of 4 KiB. */
static struct sol_map small;

/* Colours of the small frames of a frame: bit i stands for LLC colour i, or bank set i. */
struct touched {
	u32 llc;
	unsigned long sets[SOL_LONGS(MOST)];
};

static void touch(u64 pfn, struct touched *touched)
{
	u32 n = 1u << (map.frame_shift - 12), i;
	struct sol_frame_color color;

	memset(touched, 0, sizeof(*touched));
	for (i = 0; i < n; i++) {
		CHECK_EQ(sol_map_color(&small, pfn * n + i, &color), 0);
		CHECK(color.bank_set < MOST);
		touched->llc |= 1u << color.llc;
		sol_bit_set(touched->sets, color.bank_set);
	}
}

static bool share_a_set(const struct touched *a, const struct touched *b)
{
	u32 i;

	for (i = 0; i < SOL_LONGS(MOST); i++)
		if (a->sets[i] & b->sets[i])
			return true;
	return false;
}

/* Frames of two colours share nothing, and those of one colour all of it. */
static void check_pair(u64 a, u64 b)
{
	struct sol_frame_color of_a, of_b;
	struct touched by_a, by_b;

	if (sol_map_color(&map, a, &of_a) || sol_map_color(&map, b, &of_b))
		return;
	touch(a, &by_a);
	touch(b, &by_b);
	CHECK_EQ(of_a.llc == of_b.llc, by_a.llc == by_b.llc);
	CHECK_EQ(of_a.llc == of_b.llc, (by_a.llc & by_b.llc) != 0);
	if (of_a.bank_set != of_b.bank_set)
		CHECK(!share_a_set(&by_a, &by_b));
	else if (map.n_layouts == 1 && !map.way_bits)
		CHECK(!memcmp(by_a.sets, by_b.sets, sizeof(by_a.sets)));
}

TEST(large_frames_share_what_their_small_ones_share)
{
	char text[8192];
	u32 n, i, tried = 0;

	for (n = 0; n < 200; n++) {
		u64 end;

		random_map(&map);
		if (map.frame_shift == 12)
			continue;
		end = map.range[map.n_ranges - 1].end >> map.frame_shift;
		CHECK_EQ(sol_map_parse(&small, text,
				       sol_map_print(&map, text, sizeof(text)),
				       12, NULL), 0);
		for (i = 0; i < 100; i++)
			check_pair(below(end), below(end));
		tried++;
	}
	CHECK(tried > 50);
}

static void check_counts(const char *name, u32 frame_shift, u32 sets, u32 llc)
{
	load_map_of(&map, name, frame_shift);
	CHECK_EQ(map.n_bank_sets, sets);
	CHECK_EQ(map.n_llc, llc);
}

TEST(larger_frames_have_fewer_colors)
{
	static const char hashed[] =
		"soloist-map 1\nllc 12^17 12^18 13^17 14\nlayout\nbank 13\n"
		"range 0 0x100000\n";

	/* Banks A15 and up, LLC A12 to A16. */
	check_counts("opteron-6128", 12, 64, 32);
	check_counts("opteron-6128", 14, 64, 8);
	check_counts("opteron-6128", 16, 32, 2);
	/* Banks 12, 13, 19, 20: two of them also LLC, A12 to A18. */
	check_counts("xeon-w3530", 12, 16, 128);
	check_counts("xeon-w3530", 14, 4, 32);
	CHECK(sol_map_cell_exists(&map, 1, 0));
	CHECK_EQ(sol_map_cell_frames(&map, 1, 1), (1 << 18) / (4 * 32));
	/* The way of 4 KiB is no colour any more. */
	check_counts("three-channels", 12, 64, 1);
	load_map_of(&map, "three-channels", 14);
	CHECK(map.ways_joined);
	/* The first two leave 17^18. */
	CHECK_EQ(sol_map_parse(&map, hashed, sizeof(hashed) - 1, 14, NULL), 0);
	CHECK_EQ(map.n_llc, 4);
	CHECK_EQ(map.llc_color[0], 3 << 17);
	CHECK_EQ(map.llc_color[1], 1 << 14);
	CHECK_EQ(map.n_bank_sets, 1);
}

/* The ways that some layout has. */
static u32 ways_there(void)
{
	u32 way, there = 0, i;

	for (way = 0; way <= SOL_MAX_WAYS; way++) {
		for (i = 0; i < map.n_layouts; i++)
			if (sol_has_way(&map.layout[i], way))
				break;
		there += i < map.n_layouts;
	}
	return there;
}

TEST(a_frame_touches_all_banks_of_its_set_and_no_other)
{
	struct sol_frame_color color;
	u32 n, i;

	for (n = 0; n < 200; n++) {
		random_map(&map);
		for (i = 0; map.n_layouts == 1 && i < 20; i++) {
			u64 pfn = below(map.range[map.n_ranges - 1].end >> map.frame_shift);

			if (!sol_map_color(&map, pfn, &color))
				check_touched(pfn, color.bank_set);
		}
	}
}

TEST(sets_and_colors_are_a_partition)
{
	u32 n, set, i, k, bc[MOST];

	for (n = 0; n < 100; n++) {
		u32 total = 0;

		random_map(&map);
		for (set = 0; set < map.n_bank_sets; set++) {
			k = sol_map_set_colors(&map, set, bc, MOST);
			CHECK(k <= MOST);
			total += k;
			for (i = 0; i < k; i++) {
				CHECK_EQ(sol_map_color_set(&map, bc[i]), set);
				CHECK(!i || bc[i - 1] < bc[i]);
			}
		}
		CHECK_EQ(total, (map.n_colors >> map.way_bits) * ways_there());
	}
}

/* ---- Interleaving over a number of ways that is no power of two ---- */

TEST(dividing_by_a_reciprocal_is_exact)
{
	u32 ways, i, way;

	memset(&map, 0, sizeof(map));
	map.n_layouts = 1;
	for (i = 0; i < SOL_MAX_WAYS; i++) {
		map.layout[0].way_of[i] = SOL_MAX_WAYS - 1 - i;
		map.layout[0].turn_of[i] = SOL_MAX_WAYS - 1 - i;
	}
	for (ways = 1; ways <= SOL_MAX_WAYS; ways++) {
		struct sol_layout *l = &map.layout[0];

		l->ways = ways;
		l->granule = 6;
		map.per_ways[0] = ways > 1 ? ~0ull / ways + 1 : 0;
		for (i = 0; i < 3000; i++) {
			u64 at = rnd() >> (12 + below(40)), normal;

			/* About multiples, and at the top. */
			if (i % 3 == 0)
				at = at / (64 * ways) * (64 * ways) - (i & 1);
			if (i % 5 == 0)
				at = (1ull << 52) - 1 - below(1 << 12);
			at &= (1ull << 52) - 1;
			normal = sol_normalise(&map, 0, at, &way);
			CHECK_EQ(way, SOL_MAX_WAYS - 1 - (at >> 6) % ways);
			CHECK_EQ(normal, (at >> 6) / ways << 6 | (at & 63));
			CHECK_EQ(sol_denormalise(l, normal, way), at);
		}
	}
}

TEST(three_channels)
{
	struct sol_frame_color color;
	struct sol_dram dram;
	u64 addr;
	u32 set;

	load_map(&map, "three-channels");
	CHECK_EQ(map.n_channels, 4);
	CHECK_EQ(map.n_bank_sets, 64);
	/* Page by page the next channel; three pages share a place in them. */
	CHECK_EQ(sol_map_decode(&map, 0x2000, &dram), 0);
	CHECK_EQ(dram.channel, 2);
	CHECK_EQ(sol_map_decode(&map, 0x3000, &dram), 0);
	CHECK_EQ(dram.channel, 0);
	CHECK_EQ(dram.bank, 0);
	/* Behind the hole it goes on where it stopped: 2 GiB is 2 over 3. */
	CHECK_EQ(sol_map_decode(&map, 0x100000000, &dram), 0);
	CHECK_EQ(dram.channel, 0x80000 % 3);
	/* No fourth channel, and each of the others has a third of the memory. */
	dram.channel = 3;
	CHECK_EQ(sol_map_encode(&map, &dram, &addr), -ERANGE);
	for (set = 0; set < map.n_bank_sets; set++) {
		CHECK_EQ(sol_map_set_exists(&map, set), set < 48);
		CHECK_EQ(sol_map_set_frames(&map, set),
			 set < 48 ? (6u << 18) / 48 : 0);
	}
	CHECK_EQ(sol_map_color(&map, 5, &color), 0);
	CHECK_EQ(color.bank_set >> 4, 2);
}

TEST(twelve_channels_by_256_bytes)
{
	u32 set;

	/* Pages lie in all channels: only banks are colours. */
	load_map(&map, "twelve-channels");
	CHECK_EQ(map.n_channels, 16);
	CHECK_EQ(map.n_bank_sets, 32);
	for (set = 0; set < map.n_bank_sets; set++) {
		CHECK_EQ(sol_map_set_colors(&map, set, NULL, 0), 12);
		CHECK_EQ(sol_map_set_frames(&map, set), (96u << 18) / 32);
	}
}

/*
 * Three channels, of which two have twice the memory, and one of these four
 * times: ways by region. The third region's rank bit is what its base says.
 */
TEST(channels_and_ranks_by_region)
{
	struct sol_frame_color color;
	struct sol_dram dram;
	u32 set;

	load_map(&map, "regions");
	CHECK_EQ(map.n_channels, 4);
	CHECK_EQ(map.n_ranks, 2);
	CHECK_EQ(map.n_bank_sets, 64);
	/* 0, 1, 2; then 2, 1; then 2, its second rank. */
	CHECK_EQ(sol_map_decode(&map, 0x2000, &dram), 0);
	CHECK_EQ(dram.channel, 2);
	CHECK_EQ(sol_map_decode(&map, 0xc0000000, &dram), 0);
	CHECK_EQ(dram.channel, 2);
	CHECK_EQ(sol_map_decode(&map, 0xc0001000, &dram), 0);
	CHECK_EQ(dram.channel, 1);
	CHECK_EQ(sol_map_decode(&map, 0x140001000, &dram), 0);
	CHECK_EQ(dram.channel, 2);
	CHECK_EQ(dram.rank, 1);
	/* A page of each region, in one bank. */
	CHECK_EQ(sol_map_color(&map, 0x2, &color), 0);
	set = color.bank_set;
	CHECK_EQ(sol_map_color(&map, 0xc0000, &color), 0);
	CHECK_EQ(color.bank_set, set);
	/* Way 0 has a third of the first region: 1 GiB; 16 sets a way. */
	for (set = 0; set < 64; set++) {
		static const u32 gib[] = { 1, 2, 2, 0 };
		u64 frames = ((u64)gib[set >> 4] << 18) / 8;

		/* 2 GiB more in way 2, all of its second rank. */
		if (set & 8)
			frames = set >> 4 == 2 ? (2u << 18) / 8 : 0;
		CHECK_EQ(sol_map_set_frames(&map, set), frames);
		CHECK_EQ(sol_map_set_exists(&map, set), frames != 0);
	}
}

TEST(next_frame_of_a_cell_is_the_next)
{
	u32 n, i;

	for (n = 0; n < 100; n++) {
		random_map(&map);
		for (i = 0; i < 20; i++) {
			u32 cell = below(map.n_cells);
			const struct sol_range *r =
				&map.range[below(map.n_ranges)];
			u64 from = (r->start >> map.frame_shift) +
				   below((r->end - r->start) >> map.frame_shift), pfn;
			u64 stop = r->end >> map.frame_shift;

			for (pfn = from; pfn < stop &&
			     sol_map_cell(&map, pfn) != cell; pfn++)
				;
			CHECK_EQ(sol_map_next(&map, cell, from, stop), pfn);
		}
	}
}
