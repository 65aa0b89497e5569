// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "ffi.h"

u32 sol_rust_set_node(const struct sol_map *map, u32 bank_set)
{
	return sol_map_set_node(map, bank_set);
}

u32 sol_rust_cells_advance(const struct sol_map *map, const u32 *cell, u32 n,
			u32 i, u32 steps)
{
	return sol_cells_advance(i, n, sol_cells_per_set(map, cell, n), steps);
}

bool sol_rust_stopped(const struct sol_regulator *reg, u32 core)
{
	return sol_regulator_stopped(reg, core);
}
