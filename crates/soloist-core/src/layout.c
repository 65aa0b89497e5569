// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What Rust cannot read from the headers: sizes and offsets of the structs
 * that src/ffi.rs declares by hand (a test there compares every one), and the
 * inline functions.
 */
#include "colors/palette.h"
#include "frames/frames.h"
#include "lab/dram.h"
#include "lab/fill.h"
#include "map/addrmap.h"
#include "regulator/regulator.h"

#define SIZE(t)		sizeof(struct t)
#define AT(t, m)	offsetof(struct t, m)

/* Same order as `layout()` in src/ffi.rs. */
const size_t sol_layout_facts[] = {
	SIZE(sol_err), AT(sol_err, line), AT(sol_err, text),
	SIZE(sol_field), AT(sol_field, n), AT(sol_field, mask),
	SIZE(sol_layout), AT(sol_layout, channel), AT(sol_layout, rank),
	AT(sol_layout, bank), AT(sol_layout, n_row), AT(sol_layout, n_col),
	AT(sol_layout, row), AT(sol_layout, col), AT(sol_layout, col_at),
	AT(sol_layout, row_at), AT(sol_layout, chip_select),
	AT(sol_layout, bg), AT(sol_layout, sub),
	AT(sol_layout, ways), AT(sol_layout, granule),
	AT(sol_layout, way_of), AT(sol_layout, turn_of),
	SIZE(sol_range), AT(sol_range, start), AT(sol_range, end),
	AT(sol_range, base), AT(sol_range, node), AT(sol_range, layout),
	SIZE(sol_map), AT(sol_map, name), AT(sol_map, line),
	AT(sol_map, n_ranges), AT(sol_map, n_layouts), AT(sol_map, n_nodes),
	AT(sol_map, n_channels), AT(sol_map, n_ranks), AT(sol_map, n_banks),
	AT(sol_map, n_colors), AT(sol_map, n_bank_sets), AT(sol_map, n_llc),
	AT(sol_map, n_cells), AT(sol_map, bank_bits), AT(sol_map, set_bits),
	AT(sol_map, n_llc_bits), AT(sol_map, way_bits), AT(sol_map, llc),
	AT(sol_map, range), AT(sol_map, layout),
	SIZE(sol_dram), AT(sol_dram, node), AT(sol_dram, channel),
	AT(sol_dram, rank), AT(sol_dram, chip_select), AT(sol_dram, bank),
	AT(sol_dram, row), AT(sol_dram, column), AT(sol_dram, color),
	SIZE(sol_frame_color), AT(sol_frame_color, node),
	AT(sol_frame_color, color), AT(sol_frame_color, bank_set),
	AT(sol_frame_color, llc), AT(sol_frame_color, cell),
	SIZE(sol_colors), AT(sol_colors, sets), AT(sol_colors, llc),
	AT(sol_colors, by_bank), AT(sol_colors, by_llc),
	AT(sol_colors, exclusive), AT(sol_colors, realtime),
	SIZE(sol_use), AT(sol_use, owners), AT(sol_use, exclusive),
	AT(sol_use, realtime),
	SIZE(sol_palette), AT(sol_palette, map), AT(sol_palette, set),
	AT(sol_palette, llc), AT(sol_palette, in_use), AT(sol_palette, ctx),
	SIZE(sol_want), AT(sol_want, n_sets), AT(sol_want, n_llc),
	AT(sol_want, near), AT(sol_want, allowed), AT(sol_want, strict),
	AT(sol_want, realtime),
	SIZE(sol_frame), AT(sol_frame, tag), AT(sol_frame, link),
	SIZE(sol_cell), AT(sol_cell, head), AT(sol_cell, listed),
	AT(sol_cell, used), AT(sol_cell, mark), AT(sol_cell, mark_list),
	SIZE(sol_frames), AT(sol_frames, map), AT(sol_frames, frame),
	AT(sol_frames, cell), AT(sol_frames, n_frames),
	SIZE(sol_source), AT(sol_source, block), AT(sol_source, lock),
	AT(sol_source, unlock), AT(sol_source, ctx),
	AT(sol_source, max_order), AT(sol_source, max_frames),
	AT(sol_source, back),
	SIZE(sol_regulation), AT(sol_regulation, period),
	AT(sol_regulation, line), AT(sol_regulation, r_min),
	AT(sol_regulation, peak), AT(sol_regulation, q_min),
	AT(sol_regulation, ewma), AT(sol_regulation, sharing),
	SIZE(sol_reservation), AT(sol_reservation, rate),
	AT(sol_reservation, weight), AT(sol_reservation, reclaim),
	SIZE(sol_core_stats), AT(sol_core_stats, used),
	AT(sol_core_stats, donated), AT(sol_core_stats, reclaimed),
	AT(sol_core_stats, beyond), AT(sol_core_stats, periods),
	AT(sol_core_stats, stops), AT(sol_core_stats, underruns),
	SIZE(sol_answer), AT(sol_answer, order), AT(sol_answer, domain),
	AT(sol_answer, limit),
};

const size_t sol_layout_count =
	sizeof(sol_layout_facts) / sizeof(sol_layout_facts[0]);

size_t sol_rust_map_size(void);
size_t sol_rust_map_size(void)
{
	return sizeof(struct sol_map);
}

u32 sol_rust_set_node(const struct sol_map *map, u32 bank_set);
u32 sol_rust_set_node(const struct sol_map *map, u32 bank_set)
{
	return sol_map_set_node(map, bank_set);
}

u32 sol_rust_cells_turn(const struct sol_map *map, const u32 *cell, u32 n,
			u32 i, u32 turns);
u32 sol_rust_cells_turn(const struct sol_map *map, const u32 *cell, u32 n,
			u32 i, u32 turns)
{
	return sol_cells_turn(i, n, sol_cells_per_set(map, cell, n), turns);
}

size_t sol_rust_regulator_size(void);
size_t sol_rust_regulator_size(void)
{
	return sizeof(struct sol_regulator);
}

size_t sol_rust_core_size(void);
size_t sol_rust_core_size(void)
{
	return sizeof(struct sol_core);
}

const struct sol_core *sol_rust_core(const struct sol_regulator *reg, u32 core);
const struct sol_core *sol_rust_core(const struct sol_regulator *reg, u32 core)
{
	return &reg->core[core];
}

const struct sol_core_stats *sol_rust_core_stats(const struct sol_core *core);
const struct sol_core_stats *sol_rust_core_stats(const struct sol_core *core)
{
	return &core->stats;
}

u32 sol_rust_core_domain(const struct sol_core *core);
u32 sol_rust_core_domain(const struct sol_core *core)
{
	return core->domain;
}

bool sol_rust_stopped(const struct sol_regulator *reg, u32 core);
bool sol_rust_stopped(const struct sol_regulator *reg, u32 core)
{
	return sol_regulator_stopped(reg, core);
}
