/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which frames are of a cell: within an aligned region the cell is a linear
 * function (over GF(2)) of the low bits of the frame's number. It is solved once
 * for each range of the map; the frames of a cell in a region are then one
 * solution, xor any sum of the null space.
 *
 * Where offsets are interleaved over ways by division no solver helps, and core
 * steps from one frame of the way to the next.
 *
 * Locking: none; it does not change while a map is in use.
 */
#ifndef SOLOIST_SOLVER_H
#define SOLOIST_SOLVER_H

#include "../../core/map/addrmap.h"

#define SOL_REGION_ORDER	10
#define SOL_REGION		(1ul << SOL_REGION_ORDER)

/* The frames of a cell within a region, for one range of the map. */
struct sol_solver {
	u64 start;		/* frames [start, end) */
	u64 end;
	u32 node;
	bool linear;		/* else frames are looked at */
	u8 rank;
	u8 n_null;
	u8 bit[SOL_REGION_ORDER];	/* frame bit that brought pivot i, ... */
	u8 top[SOL_REGION_ORDER];	/* ... and the cell's bit that it settles */
	u16 from[SOL_REGION_ORDER];	/* pivot i: frame bits ... */
	u32 image[SOL_REGION_ORDER];	/* ... and what they do to the cell */
	u16 null[SOL_REGION_ORDER];	/* frame bits that leave the cell alone */
	u16 carry[SOL_REGION_ORDER];	/* null[0] to null[i]: from a sum to the next */
	u32 *head;		/* by region, of linear ones: its first frame's cell */
};

/* Solve @map, one for each of its ranges. NULL: no memory. */
struct sol_solver *sol_solvers_new(const struct sol_map *map);

/* Go by @s from now on (NULL, 0: by none), while nobody asks. */
void sol_solvers_install(struct sol_solver *s, u32 n);

/* Of the range that holds frame @pfn, or NULL: a hole. */
const struct sol_solver *sol_solver_of(u64 pfn);

/* Of the range of @node with the highest frames below @pfn, or NULL. */
const struct sol_solver *sol_solver_below(u32 node, u64 pfn);

/* Regions, in whole or in part, that @node has. */
u32 sol_solver_regions(u32 node);

/*
 * Frame bits below 2^@order that change the cell by @diff; -1: none can. Only
 * of a linear one.
 */
int sol_solve(const struct sol_solver *s, u32 diff, u32 order);

/* The @i-th sum of the null space, i < 2^n_null. Only of a linear one. */
u32 sol_null_sum(const struct sol_solver *s, u32 i);

#endif /* SOLOIST_SOLVER_H */
