// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Cells and blocks, against visiting every frame. */
#include "check.h"
#include "colors/palette.h"

static struct sol_map map;

static u64 machine_frames(void)
{
	u64 frames = 0;
	u32 i;

	for (i = 0; i < map.n_ranges; i++)
		frames += (map.range[i].end - map.range[i].start) >> map.frame_shift;
	return frames;
}

static u64 last_pfn(void)
{
	return map.range[map.n_ranges - 1].end >> map.frame_shift;
}

TEST(cell_frames_are_what_visiting_counts)
{
	u32 n, set, llc;
	u64 pfn;

	for (n = 0; n < 60; n++) {
		u32 *count, cell;

		random_map(&map);
		count = calloc(map.n_cells, sizeof(*count));
		for (pfn = 0; pfn < last_pfn(); pfn++) {
			cell = sol_map_cell(&map, pfn);
			if (cell != SOL_NO_CELL)
				count[cell]++;
		}
		for (set = 0; set < map.n_bank_sets; set++) {
			u64 sum = 0;

			for (llc = 0; llc < map.n_llc; llc++) {
				cell = set * map.n_llc + llc;
				sum += count[cell];
				CHECK_EQ(sol_map_cell_frames(&map, set, llc),
					 count[cell]);
				CHECK_EQ(sol_map_cell_exists(&map, set, llc),
					 count[cell] != 0);
			}
			CHECK_EQ(sol_map_set_frames(&map, set), sum);
			CHECK_EQ(sol_map_set_exists(&map, set), sum != 0);
		}
		free(count);
	}
}

TEST(each_cell_is_of_one_node)
{
	u32 n, node, first, count, cell, at;

	for (n = 0; n < 60; n++) {
		random_map(&map);
		for (node = 0, at = 0; node < map.n_nodes; node++) {
			count = sol_map_node_cells(&map, node, &first);
			CHECK_EQ(first, at);
			for (cell = first; cell < first + count; cell++)
				CHECK_EQ(sol_map_set_node(&map, cell / map.n_llc),
					 node);
			at += count;
		}
		CHECK_EQ(at, map.n_cells);
		CHECK_EQ(sol_map_node_cells(&map, map.n_nodes, &first), 0);
	}
}

TEST(cell_frames_add_up_to_the_machine)
{
	static const char *const name[] = {
		"opteron-6128", "opteron-6128-noninterleaved", "xeon-w3530",
		"ddr5", "asymmetric",
	};
	u32 n, set, llc;

	for (n = 0; n < 5; n++) {
		u64 frames = 0;

		load_map(&map, name[n]);
		for (set = 0; set < map.n_bank_sets; set++)
			for (llc = 0; llc < map.n_llc; llc++)
				frames += sol_map_cell_frames(&map, set, llc);
		CHECK_EQ(frames, machine_frames());
	}
}

TEST(a_quarter_of_the_opteron_pairs_exist)
{
	u32 set, llc, exist = 0;

	load_map(&map, "opteron-6128");
	for (set = 0; set < map.n_bank_sets; set++)
		for (llc = 0; llc < map.n_llc; llc++) {
			bool can = sol_map_cell_exists(&map, set, llc);

			/* Bank bits 0 and 1 are address bits 15 and 16. */
			CHECK_EQ(can, (set & 3) == llc >> 3);
			CHECK_EQ(sol_map_cell_frames(&map, set, llc),
				 can ? (8u << 18) / 16 / 8 : 0);
			exist += can;
		}
	CHECK_EQ(exist * 4, map.n_cells);
}

/* Every channel of whole rounds has as much memory, colours are alike. */
TEST(interleaved_colors_are_equally_large)
{
	u32 n, set;

	for (n = 0; n < 200; n++) {
		u64 frames = 0, most = 0, bytes;

		do
			random_map(&map);
		while (!map.layout[0].ways || map.n_layouts > 1);
		bytes = map.range[0].end - map.range[0].start;
		if (map.n_ranges > 1 || bytes / map.layout[0].ways &
		    (bytes / map.layout[0].ways - 1))
			continue;
		for (set = 0; set < map.n_bank_sets; set++) {
			u64 of_set = sol_map_set_frames(&map, set);

			frames += of_set;
			if (of_set && !most)
				most = of_set;
			CHECK(!of_set || of_set == most);
		}
		CHECK_EQ(frames, bytes >> map.frame_shift);
	}
}

/* So they are in each region, of those that it has. */
TEST(colors_of_a_region_are_equally_large)
{
	u32 n, i, set, tried = 0;

	for (n = 0; n < 200; n++) {
		u32 *count;

		random_map(&map);
		if (map.n_layouts == 1)
			continue;
		count = calloc(map.n_bank_sets, sizeof(*count));
		for (i = 0; i < map.n_ranges; i++) {
			const struct sol_range *r = &map.range[i];
			u32 ways = map.layout[r->layout].ways, most = 0;
			u64 bytes = r->end - r->start, pfn;

			bytes /= ways ? ways : 1;
			if (bytes & (bytes - 1) || bytes < 1 << 20 ||
			    r->base % (r->end - r->start))
				continue;
			memset(count, 0, map.n_bank_sets * sizeof(*count));
			for (pfn = r->start >> map.frame_shift; pfn < r->end >> map.frame_shift; pfn++)
				count[sol_map_cell(&map, pfn) >>
				      map.n_llc_bits]++;
			for (set = 0; set < map.n_bank_sets; set++) {
				if (count[set] && !most)
					most = count[set];
				CHECK(!count[set] || count[set] == most);
			}
			tried++;
		}
		free(count);
	}
	CHECK(tried > 20);
}

/* ---- Blocks ---- */

/* Does every aligned block of this order that touches @sets lie in them? */
static bool blocks_within(const unsigned long *sets, u32 order)
{
	u64 first, pfn;

	for (first = 0; first < last_pfn(); first += 1ull << order) {
		bool in = false, out = false;

		for (pfn = first; pfn < first + (1ull << order); pfn++) {
			u32 cell = sol_map_cell(&map, pfn);

			if (cell == SOL_NO_CELL)
				continue;
			if (sol_bit(sets, cell >> map.n_llc_bits))
				in = true;
			else
				out = true;
		}
		if (in && out)
			return false;
	}
	return true;
}

static void random_sets(unsigned long *sets)
{
	u32 i, node = below(map.n_nodes), step = 1u << below(map.set_bits + 1);

	memset(sets, 0, SOL_LONGS(map.n_bank_sets) * sizeof(*sets));
	for (i = 0; i < map.n_bank_sets; i++)
		if (sol_map_set_node(&map, i) == node && !(i & step))
			sol_bit_set(sets, i);
}

TEST(block_order_is_safe)
{
	unsigned long sets[SOL_LONGS(1 << 12)];
	u32 n;

	for (n = 0; n < 150; n++) {
		u32 order;

		random_map(&map);
		random_sets(sets);
		order = sol_map_block_order(&map, sets);
		CHECK(order <= sol_huge_order(&map));
		CHECK(blocks_within(sets, order));
	}
}

TEST(block_order_of_the_opteron)
{
	unsigned long sets[SOL_LONGS(64)] = { 0 };
	u32 i;

	load_map(&map, "opteron-6128");
	/* One bank set: pages of 32 KiB, then bank bit 0 (A15) changes. */
	sol_bit_set(sets, 5);
	CHECK_EQ(sol_map_block_order(&map, sets), 3);
	/* Both values of A15. */
	sol_bit_set(sets, 4);
	CHECK_EQ(sol_map_block_order(&map, sets), 4);
	/* A controller: huge pages. */
	for (i = 0; i < 16; i++)
		sol_bit_set(sets, i);
	CHECK_EQ(sol_map_block_order(&map, sets), 9);
	/* Memory without a map's colours at all. */
	memset(sets, 0, sizeof(sets));
	CHECK_EQ(sol_map_block_order(&map, sets), 9);
}
