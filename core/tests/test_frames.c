// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Frame lists against a reference that keeps the state of each frame. */
#include "check.h"
#include "lab/fill.h"

static struct sol_map map;
static struct sol_frames fs;

enum state { FOREIGN, LISTED, USED };

/* What the test believes of a frame. */
struct model {
	enum state state;
	bool zero;
	u32 owner;
};

static struct model *model;

/* All of @map's first @n frames foreign, by numbers or by slots. */
static void set_up_frames(u32 n)
{
	u32 i;

	free(fs.frame);
	free(fs.owned);
	free(fs.cell);
	free(model);
	fs.frame = calloc(sol_frames_slots(n), sizeof(*fs.frame));
	fs.owned = calloc(n, 1);
	fs.cell = aligned_alloc(64, map.n_cells * sizeof(*fs.cell));
	for (i = 0; i < map.n_cells; i++)
		memset(&fs.cell[i], 0xaa, sizeof(fs.cell[i]));
	model = calloc(n, sizeof(*model));
	sol_frames_init(&fs, &map, fs.frame, fs.owned, n, fs.cell);
	if (once_in(2))
		fs.swap_bit = sol_frames_swap_bit(&map);
	else if (once_in(2))
		fs.swap_bit = 3 + below(SOL_SLOT_BITS - 5);
}

static void set_up(void)
{
	random_map(&map);
	set_up_frames(map.range[map.n_ranges - 1].end >> map.frame_shift);
}

/* Walk a stack; every frame of it is believed to be there. */
static u32 walk(u32 cell, bool zero)
{
	u32 pfn, n = 0;

	for (pfn = fs.cell[cell].head[zero]; pfn != SOL_NO_FRAME;
	     pfn = sol_frames_at(&fs, pfn)->link, n++) {
		CHECK(pfn < fs.n_frames);
		CHECK_EQ(model[pfn].state, LISTED);
		CHECK_EQ(model[pfn].zero, zero);
		CHECK_EQ(sol_map_cell(&map, pfn), cell);
		CHECK(n <= fs.n_frames);
	}
	CHECK_EQ(n, fs.cell[cell].listed[zero]);
	return n;
}

static void check_all(void)
{
	u32 listed = 0, used = 0, cell, pfn;

	for (cell = 0; cell < map.n_cells; cell++) {
		listed += walk(cell, false) + walk(cell, true);
		used += fs.cell[cell].used;
	}
	for (pfn = 0; pfn < fs.n_frames; pfn++) {
		CHECK_EQ(sol_frames_owned(&fs, pfn),
			 model[pfn].state != FOREIGN);
		listed -= model[pfn].state == LISTED;
		used -= model[pfn].state == USED;
		if (model[pfn].state == USED)
			CHECK_EQ(sol_frames_at(&fs, pfn)->link, model[pfn].owner);
	}
	CHECK_EQ(listed, 0);
	CHECK_EQ(used, 0);
	CHECK(!sol_frames_owned(&fs, fs.n_frames));
}

static void try_add(u32 pfn)
{
	u32 cell = sol_map_cell(&map, pfn);
	bool zero = once_in(3);

	if (cell == SOL_NO_CELL || model[pfn].state != FOREIGN)
		return;
	if (once_in(4)) {
		sol_frames_adopt(&fs, cell, pfn);
		model[pfn] = (struct model){ USED, false, 0 };
		return;
	}
	sol_frames_add(&fs, cell, pfn, zero);
	model[pfn] = (struct model){ LISTED, zero, 0 };
}

static void try_get(u32 cell)
{
	bool zero = once_in(2), is_zero = false;
	u32 owner = rnd(), pfn;
	u32 other = fs.cell[cell].listed[!zero];
	u32 want = fs.cell[cell].listed[zero];

	pfn = sol_frames_get(&fs, cell, owner, zero, &is_zero);
	CHECK_EQ(pfn == SOL_NO_FRAME, !want && !other);
	if (pfn == SOL_NO_FRAME)
		return;
	CHECK_EQ(model[pfn].state, LISTED);
	CHECK_EQ(is_zero, model[pfn].zero);
	CHECK_EQ(is_zero, want ? zero : !zero);
	CHECK_EQ(sol_map_cell(&map, pfn), cell);
	model[pfn] = (struct model){ USED, false, owner };
}

static void try_hold(u32 cell)
{
	bool zero = once_in(2), is_zero = false;
	u32 pfn[8], n = below(9), got, i;
	u32 want = fs.cell[cell].listed[zero];
	u32 had = want ? want : fs.cell[cell].listed[!zero];

	got = sol_frames_hold(&fs, cell, zero, pfn, n, &is_zero);
	CHECK_EQ(got, n < had ? n : had);
	for (i = 0; i < got; i++) {
		CHECK_EQ(model[pfn[i]].state, LISTED);
		CHECK_EQ(is_zero, model[pfn[i]].zero);
		CHECK_EQ(is_zero, want ? zero : !zero);
		CHECK_EQ(sol_map_cell(&map, pfn[i]), cell);
		CHECK_EQ(sol_frames_at(&fs, pfn[i])->tag, cell | SOL_TAG_HELD);
		model[pfn[i]] = (struct model){ USED, false, 0 };
		if (once_in(2))
			continue;
		model[pfn[i]].owner = rnd();
		sol_frames_use(&fs, cell, pfn[i], model[pfn[i]].owner);
	}
}

static void try_return(u32 pfn)
{
	bool zero = once_in(4);

	if (model[pfn].state != USED)
		return;
	if (once_in(5)) {
		CHECK_EQ(sol_frames_forget(&fs, pfn), model[pfn].owner);
		model[pfn] = (struct model){ FOREIGN, false, 0 };
		return;
	}
	CHECK_EQ(sol_frames_put(&fs, pfn, zero), model[pfn].owner);
	model[pfn] = (struct model){ LISTED, zero, 0 };
}

static void try_drain(u32 cell)
{
	u32 had = fs.cell[cell].listed[0] + fs.cell[cell].listed[1];
	u32 pfn = sol_frames_drain(&fs, cell);

	CHECK_EQ(pfn != SOL_NO_FRAME, had != 0);
	if (pfn == SOL_NO_FRAME)
		return;
	CHECK_EQ(model[pfn].state, LISTED);
	model[pfn] = (struct model){ FOREIGN, false, 0 };
}

static void random_step(void)
{
	u32 pfn = below(fs.n_frames), cell = sol_map_cell(&map, pfn);

	switch (below(9)) {
	case 8:
		if (cell != SOL_NO_CELL)
			try_hold(cell);
		break;
	case 0: case 1: case 2:
		try_add(pfn);
		break;
	case 3: case 4:
		if (cell != SOL_NO_CELL)
			try_get(cell);
		break;
	case 5: case 6:
		try_return(pfn);
		break;
	default:
		if (cell != SOL_NO_CELL)
			try_drain(cell);
	}
}

TEST(lists_conserve_frames)
{
	u32 n, i;

	for (n = 0; n < 20; n++) {
		set_up();
		for (i = 0; i < 20000; i++) {
			random_step();
			if (i % 4000 == 0)
				check_all();
		}
		check_all();
	}
}

/* ---- Slots ---- */

TEST(every_frame_has_a_slot_of_its_own)
{
	u32 n, i, k, slot, slots;
	u8 *taken;

	for (n = 0; n < 200; n++) {
		fs.swap_bit = once_in(8) ? 0 : 3 + below(SOL_SLOT_BITS - 5);
		i = 1 + below(100000);
		slots = sol_frames_slots(i);
		CHECK(slots >= i && slots < i + (1u << SOL_SLOT_BITS));
		taken = calloc(slots, 1);
		for (k = 0; k < i; k++) {
			slot = sol_frames_slot(&fs, k);
			CHECK(slot < slots);
			CHECK(!taken[slot]);
			taken[slot] = 1;
			CHECK_EQ(sol_frames_slot(&fs, slot), k);
		}
		free(taken);
	}
}

/*
 * Frames of @r whose slots share a line with another cell's, of the @of that it
 * has. Ends of a range, where not all that could share one are there, are left out.
 */
static u32 strangers(const struct sol_range *r, u32 *of)
{
	u32 block = fs.swap_bit ? 8u << fs.swap_bit : 8, others = 0, pfn, i;
	u32 end = r->end >> map.frame_shift;

	*of = 0;
	pfn = ((r->start >> map.frame_shift) + block - 1) & ~(block - 1);
	for (; pfn + block <= end; pfn += block)
		for (i = 0; i < block; i++) {
			u32 slot = sol_frames_slot(&fs, pfn + i);
			u32 first = sol_frames_slot(&fs, slot & ~7u);

			others += sol_map_cell(&map, pfn + i) !=
				  sol_map_cell(&map, first);
			++*of;
		}
	return others;
}

TEST(a_line_of_slots_has_one_color)
{
	static const char *const names[] = {
		"asymmetric", "ddr5", "opteron-6128",
		"opteron-6128-noninterleaved", "xeon-w3530",
	};
	u32 i, n, of, found = 0;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		load_map(&map, names[i]);
		fs.swap_bit = 0;
		CHECK(strangers(&map.range[0], &of) > of / 2);
		fs.swap_bit = sol_frames_swap_bit(&map);
		CHECK(fs.swap_bit);
		for (n = 0; n < map.n_ranges; n++)
			CHECK_EQ(strangers(&map.range[n], &of), 0);
	}
	for (i = 0; i < 40; i++) {
		random_map(&map);
		fs.swap_bit = sol_frames_swap_bit(&map);
		for (n = 0; fs.swap_bit && n < map.n_ranges; n++) {
			CHECK_EQ(strangers(&map.range[n], &of), 0);
			found += of != 0;
		}
	}
	CHECK(found);
}

/*
 * The last range's base is four frames off: in 28 of its 3043 frames that carries
 * to a bit that decides.
 */
TEST(a_rare_carry_is_found)
{
	static const char text[] =
		"soloist-map 1\nlayout\nrank 10^21\ncs 1\n"
		"bank 16^23 6^7 11^12^22 13\n"
		"row @7:6^17 @6:11 @5:20^23 @4:23 @3:22 @2:18^21 @1:21 @0:17\n"
		"col 15^17^18 14^19^21 9 8 @5:14\n"
		"range 0x0 0x8b3000 node 0\n"
		"range 0x8b7000 0xa65000 node 0 base 0x8b3000\n"
		"range 0xa65000 0x1004000 node 0 base 0xa61000\n"
		"range 0x1004000 0x1be7000 node 1\n";
	struct sol_err err;
	u32 n, of;

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 12, &err), 0);
	fs.swap_bit = sol_frames_swap_bit(&map);
	for (n = 0; fs.swap_bit && n < map.n_ranges; n++)
		CHECK_EQ(strangers(&map.range[n], &of), 0);
}

/* The second range's start is three frames off: ways carry once in 7 * 256 frames. */
TEST(a_rare_carry_of_ways_is_found)
{
	static const char text[] =
		"soloist-map 1\nlayout\ninterleave 7 128\n"
		"bank 6^7^16 8^17^19 6^14^18 20\n"
		"row 9 10 11 12 13 15 17 18\ncol 6 7 8\n"
		"range 0x40000 0xe40000 node 0\n"
		"range 0xe43000 0x1c43000 node 1\n";
	struct sol_err err;
	u32 n, of;

	err.text[0] = 0;
	if (sol_map_parse(&map, text, sizeof(text) - 1, 12, &err))
		test_fail("a map", err.line, "%s", err.text);
	fs.swap_bit = sol_frames_swap_bit(&map);
	for (n = 0; fs.swap_bit && n < map.n_ranges; n++)
		CHECK_EQ(strangers(&map.range[n], &of), 0);
}

/* Ways that take turns leave no bit alone. */
TEST(no_bits_are_found_where_there_are_none)
{
	load_map(&map, "three-channels");
	CHECK_EQ(sol_frames_swap_bit(&map), 0);
}

/* ---- Evicting ---- */

static u32 gone_count;

static void note_gone(void *ctx, u32 pfn)
{
	(void)ctx;
	CHECK_EQ(model[pfn].state, LISTED);
	model[pfn] = (struct model){ FOREIGN, false, 0 };
	gone_count++;
}

static u32 listed_within(u32 cell, u32 start, u32 end)
{
	u32 n = 0, pfn;

	for (pfn = start; pfn < end; pfn++)
		n += model[pfn].state == LISTED &&
		     sol_map_cell(&map, pfn) == cell;
	return n;
}

/* Between two calls others get and put frames, but none of the interval. */
static void disturb(u32 cell, u32 start, u32 end)
{
	u32 i;

	for (i = below(6); i; i--) {
		u32 pfn = below(fs.n_frames);

		if (once_in(2))
			try_get(cell);
		else if (pfn < start || pfn >= end)
			try_return(pfn);
	}
}

static void evict_all(u32 cell, u32 start, u32 end)
{
	u32 calls = 0, left;

	do {
		left = sol_frames_evict(&fs, cell, start, end, 1 + below(5),
					note_gone, NULL);
		if (!left && once_in(3))
			disturb(cell, start, end);
		CHECK(++calls < 100000);
	} while (!left);
	CHECK_EQ(listed_within(cell, start, end), 0);
}

TEST(eviction_empties_an_interval)
{
	u32 n, i, start, end, cell;

	for (n = 0; n < 40; n++) {
		set_up();
		for (i = 0; i < fs.n_frames; i++)
			try_add(i);
		start = below(fs.n_frames);
		end = start + below(fs.n_frames - start + 1);
		gone_count = 0;
		for (i = 0; i < 8; i++) {
			cell = sol_map_cell(&map, below(fs.n_frames));
			if (cell == SOL_NO_CELL)
				continue;
			evict_all(cell, start, end);
			check_all();
		}
	}
}

TEST(eviction_in_one_call)
{
	u32 pfn, cell, want;

	set_up();
	for (pfn = 0; pfn < fs.n_frames; pfn++)
		try_add(pfn);
	cell = sol_map_cell(&map, map.range[0].start >> map.frame_shift);
	want = listed_within(cell, 0, fs.n_frames);
	gone_count = 0;
	CHECK(sol_frames_evict(&fs, cell, 0, fs.n_frames, want + 1, note_gone,
			       NULL));
	CHECK_EQ(gone_count, want);
	check_all();
}

/* Calls that do not disturb each other look at each frame once. */
TEST(eviction_goes_on_where_it_stopped)
{
	u32 pfn, n, calls, cell, listed;

	for (n = 0; n < 30; n++) {
		set_up();
		for (pfn = 0; pfn < fs.n_frames; pfn++)
			try_add(pfn);
		cell = sol_map_cell(&map, map.range[0].start >> map.frame_shift);
		listed = fs.cell[cell].listed[0] + fs.cell[cell].listed[1];
		for (calls = 1; !sol_frames_evict(&fs, cell, 0,
				fs.n_frames / 2, 2, note_gone, NULL); calls++)
			CHECK(calls <= listed / 2 + 2);
		CHECK_EQ(listed_within(cell, 0, fs.n_frames / 2), 0);
		check_all();
	}
}

/* The frame that the walk stopped at moves to the other list. */
TEST(eviction_with_its_mark_moved)
{
	u32 pfn[4], n, i, cell;
	bool zero;

	/* A small map may have fewer than four frames of a cell. */
	do {
		set_up();
		cell = sol_map_cell(&map, map.range[0].start >> map.frame_shift);
		for (n = 0, i = 0; n < 4 && i < fs.n_frames; i++)
			if (sol_map_cell(&map, i) == cell)
				pfn[n++] = i;
	} while (n < 4);
	/* Not zero: 3 2 0 from the head; zero: 1. */
	for (i = 0; i < 4; i++) {
		sol_frames_add(&fs, cell, pfn[i], i == 1);
		model[pfn[i]] = (struct model){ LISTED, i == 1, 0 };
	}
	/* Stops at 3. */
	CHECK_EQ(sol_frames_evict(&fs, cell, pfn[0], pfn[0] + 1, 1, note_gone,
				  NULL), 0);
	CHECK_EQ(sol_frames_get(&fs, cell, 7, false, &zero), pfn[3]);
	CHECK_EQ(sol_frames_put(&fs, pfn[3], true), 7);
	model[pfn[3]].zero = true;
	CHECK(sol_frames_evict(&fs, cell, pfn[0], pfn[0] + 1, 100, note_gone,
			       NULL));
	CHECK_EQ(model[pfn[0]].state, FOREIGN);
	check_all();
}

/* ---- Filling ---- */

/* A source: blocks in a row, some of them taken already. */
struct pool {
	bool *taken;		/* by frame */
	u32 max_seen;
	u32 depth;		/* locks held */
	u32 locked;
	u32 returned;
};

static struct pool pool;

static bool block_free(u32 node, u32 first, u32 order)
{
	u32 pfn;

	for (pfn = first; pfn < first + (1u << order); pfn++) {
		u32 cell;

		if (pfn >= fs.n_frames || pool.taken[pfn])
			return false;
		cell = sol_map_cell(&map, pfn);
		if (cell != SOL_NO_CELL &&
		    sol_map_set_node(&map, cell / map.n_llc) != node)
			return false;
	}
	return sol_map_cell(&map, first) != SOL_NO_CELL;
}

static s64 pool_block(void *ctx, u32 node, u32 max, u32 *order, bool *zero)
{
	u32 first, pfn;
	s32 o;

	CHECK(ctx == &pool);
	CHECK_EQ(pool.depth, 0);
	for (o = below(max + 1); o >= 0; o--)
		for (first = 0; first < fs.n_frames; first += 1u << o) {
			if (!block_free(node, first, o))
				continue;
			for (pfn = first; pfn < first + (1u << o); pfn++)
				pool.taken[pfn] = true;
			*order = o;
			*zero = once_in(2);
			for (pfn = first; pfn < first + (1u << o); pfn++)
				model[pfn].zero = *zero;
			return first;
		}
	return -1;
}

static void pool_lock(void *ctx, u32 cell)
{
	(void)ctx;
	CHECK_EQ(pool.depth++, 0);
	pool.locked = cell;
}

static void pool_unlock(void *ctx, u32 cell)
{
	(void)ctx;
	CHECK_EQ(pool.depth--, 1);
	CHECK_EQ(pool.locked, cell);
}

static void pool_back(void *ctx, u32 pfn)
{
	(void)ctx;
	CHECK_EQ(sol_map_cell(&map, pfn), SOL_NO_CELL);
	pool.returned++;
}

/* Every frame taken is on its list or came back; returns how many are new. */
static u32 account(void)
{
	u32 pfn, added = 0;

	for (pfn = 0; pfn < fs.n_frames; pfn++)
		if (pool.taken[pfn] && model[pfn].state == FOREIGN &&
		    sol_map_cell(&map, pfn) != SOL_NO_CELL) {
			model[pfn].state = LISTED;
			added++;
		}
	return added;
}

static bool any_listed(const u32 *cells, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (fs.cell[cells[i]].listed[0] || fs.cell[cells[i]].listed[1])
			return true;
	return false;
}

static void fill_once(const struct sol_source *src)
{
	u32 cells[5], n = 0, hit, added, i;

	for (i = 0; i < 5; i++) {
		u32 cell = sol_map_cell(&map, below(fs.n_frames));

		if (cell != SOL_NO_CELL)
			cells[n++] = cell;
	}
	if (!n)
		return;
	added = sol_frames_fill(&fs, src, cells, n, &hit);
	CHECK_EQ(account(), added);
	CHECK(added <= src->max_frames);
	if (hit < n)
		CHECK(any_listed(&cells[hit], 1));
	else
		CHECK(!any_listed(cells, n));
	/* Nothing: then there was nothing on the nodes of these cells. */
	for (i = 0; hit == n && !added && i < n; i++) {
		u32 node = sol_map_set_node(&map, cells[i] / map.n_llc), pfn;

		for (pfn = 0; pfn < fs.n_frames; pfn++)
			CHECK(!block_free(node, pfn, 0));
	}
	/* Take what was found, so that the next fill has to go on. */
	for (i = 0; i < n; i++)
		while (any_listed(&cells[i], 1) && !once_in(8))
			try_get(cells[i]);
}

TEST(filling_goes_on_until_found_or_exhausted)
{
	struct sol_source src = {
		.block = pool_block, .lock = pool_lock, .unlock = pool_unlock,
		.back = pool_back, .ctx = &pool,
	};
	u32 n, i, pfn, uncovered;

	for (n = 0; n < 15; n++) {
		set_up();
		free(pool.taken);
		pool = (struct pool){
			.taken = calloc(fs.n_frames, sizeof(bool)),
		};
		for (i = 0; i < 40; i++) {
			src.max_order = below(10);
			src.max_frames = 1 + below(2000);
			fill_once(&src);
		}
		/* Until nothing is left. */
		src.max_frames = 1u << 30;
		for (i = 0; i < 100; i++)
			fill_once(&src);
		uncovered = 0;
		for (pfn = 0; pfn < fs.n_frames; pfn++) {
			uncovered += pool.taken[pfn] &&
				     sol_map_cell(&map, pfn) == SOL_NO_CELL;
			if (model[pfn].state == FOREIGN)
				model[pfn].zero = false;
		}
		CHECK_EQ(pool.returned, uncovered);
		check_all();
	}
	free(pool.taken);
	pool.taken = NULL;
}

/* The printed algorithm gives up after one block of each order. */
TEST(filling_finds_the_last_frame)
{
	struct sol_source src = {
		.block = pool_block, .ctx = &pool, .max_order = 0,
		.max_frames = 1u << 30,
	};
	u32 last, cell, hit, added;

	load_map(&map, "opteron-6128");
	set_up_frames(4096);
	pool = (struct pool){ .taken = calloc(4096, sizeof(bool)) };
	/* Bit 18 (frame bit 6) is set in the upper half of 128 frames only. */
	last = 127;
	cell = sol_map_cell(&map, last);
	added = sol_frames_fill(&fs, &src, &cell, 1, &hit);
	CHECK_EQ(hit, 0);
	CHECK_EQ(added, last + 1);
	free(pool.taken);
	pool.taken = NULL;
}
