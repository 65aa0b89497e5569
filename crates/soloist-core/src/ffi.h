/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What src/ffi.rs is made from (`scripts/ffi`): the headers that the crate uses,
 * and functions for what core/ has inline.
 */
#include "colors/palette.h"
#include "frames/frames.h"
#include "lab/dram.h"
#include "lab/fill.h"
#include "map/addrmap.h"
#include "regulator/regulator.h"
#include "text/numlist.h"

/* sol_map_set_node() */
u32 sol_rust_set_node(const struct sol_map *map, u32 bank_set);

/* sol_cells_advance() over @cell[@n] of @map */
u32 sol_rust_cells_advance(const struct sol_map *map, const u32 *cell, u32 n,
			u32 i, u32 steps);

/* sol_regulator_stopped() */
bool sol_rust_stopped(const struct sol_regulator *reg, u32 core);
