// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Decoding, encoding and colours of addresses. */
#include "check.h"
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

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, &err), 0);
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
		CHECK_EQ(sol_map_decode(&map, pfn << 12, &first), -ERANGE);
		return;
	}
	CHECK_EQ(sol_map_decode(&map, pfn << 12, &first), 0);
	CHECK_EQ(color.color, first.color);
	CHECK_EQ(color.cell, sol_map_cell(&map, pfn));
	CHECK_EQ(color.cell, color.bank_set * map.n_llc + color.llc);
	CHECK(color.cell < map.n_cells);
	CHECK_EQ(sol_map_set_node(&map, color.bank_set), color.node);
	CHECK(sol_map_cell_exists(&map, color.bank_set, color.llc));
	for (i = 0; i < 4; i++)
		check_line(&color, pfn << 12 | below(4096));
}

TEST(decode_and_encode_are_inverse)
{
	u32 n, i;

	for (n = 0; n < 300; n++) {
		u64 end;

		random_map(&map);
		end = map.range[map.n_ranges - 1].end >> 12;
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

			check_frame((r->start + below(r->end - r->start)) >> 12);
		}
	}
}

/* A bank set is what a frame touches, no more. */
static void check_touched(u64 pfn, u32 set)
{
	u32 bc[256], k = sol_map_set_colors(&map, set, bc, 256), i;
	bool seen[256] = { false };
	struct sol_dram dram;
	u64 line;

	for (line = 0; line < 4096; line += map.line) {
		CHECK_EQ(sol_map_decode(&map, (pfn << 12) + line, &dram), 0);
		for (i = 0; i < k && bc[i] != dram.color; i++)
			;
		CHECK(i < k);
		seen[i] = true;
	}
	for (i = 0; i < k; i++)
		CHECK(seen[i]);
}

TEST(a_frame_touches_all_banks_of_its_set_and_no_other)
{
	struct sol_frame_color color;
	u32 n, i;

	for (n = 0; n < 200; n++) {
		random_map(&map);
		for (i = 0; map.n_layouts == 1 && i < 20; i++) {
			u64 pfn = below(map.range[map.n_ranges - 1].end >> 12);

			if (!sol_map_color(&map, pfn, &color))
				check_touched(pfn, color.bank_set);
		}
	}
}

TEST(sets_and_colors_are_a_partition)
{
	u32 n, set, i, k, bc[256];

	for (n = 0; n < 100; n++) {
		u32 total = 0;

		random_map(&map);
		for (set = 0; set < map.n_bank_sets; set++) {
			k = sol_map_set_colors(&map, set, bc, 256);
			CHECK(k <= 256);
			total += k;
			for (i = 0; i < k; i++) {
				CHECK_EQ(sol_map_color_set(&map, bc[i]), set);
				CHECK(!i || bc[i - 1] < bc[i]);
			}
		}
		CHECK_EQ(total, map.n_colors);
	}
}
