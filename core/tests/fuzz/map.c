// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Fuzz the map parser; what it takes must print, read back and decode. */
#include <stdlib.h>

#include "colors/palette.h"
#include "lab/dram.h"

#define MUST(condition)	do { if (!(condition)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static struct sol_map map, again;
static char text[1 << 16];

static void look_up(u64 addr)
{
	struct sol_frame_color color;
	struct sol_dram dram;
	u64 back;

	if (sol_map_decode(&map, addr, &dram)) {
		MUST(sol_map_cell(&map, addr >> map.frame_shift) == SOL_NO_CELL);
		return;
	}
	MUST(dram.color < map.n_colors);
	MUST(!sol_map_color(&map, addr >> map.frame_shift, &color));
	MUST(color.cell == sol_map_cell(&map, addr >> map.frame_shift));
	MUST(color.cell < map.n_cells);
	MUST(sol_map_color_set(&map, dram.color) == color.bank_set);
	MUST(sol_map_cell_exists(&map, color.bank_set, color.llc));
	MUST(sol_map_cell_frames(&map, color.bank_set, color.llc));
	if (map.n_layouts == 1 && !sol_map_encode(&map, &dram, &back))
		MUST((back ^ addr) < map.line);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct sol_err err = { 0 };
	size_t len;
	u32 i, frame_shift = 12 + 2 * (size % 3);

	if (sol_map_parse(&map, (const char *)data, size, frame_shift, &err)) {
		MUST(err.text[0]);
		return 0;
	}
	len = sol_map_print(&map, text, sizeof(text));
	MUST(len < sizeof(text));
	MUST(!sol_map_parse(&again, text, len, frame_shift, &err));
	MUST(!memcmp(&map, &again, sizeof(map)));
	for (i = 0; i < map.n_ranges; i++) {
		look_up(map.range[i].start);
		look_up(map.range[i].end - 1);
		look_up(map.range[i].end);
		look_up(map.range[i].start +
			(map.range[i].end - map.range[i].start) / 3);
	}
	return 0;
}
