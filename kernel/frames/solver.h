/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Solvers tell which frames are of a cell. Within an aligned region the cell is a
 * linear function (over GF(2)) of the low bits of the frame number. It is solved once
 * for each range of the map: the frames of a cell in a region are one solution, xor
 * any sum of vectors of the null space.
 *
 * If offsets are interleaved over ways by division, the function is not linear; core
 * steps from one frame of the way to the next then.
 *
 * Locking: none; solvers do not change while a map is in use.
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
	bool linear;		/* or frames are looked at one by one */
	u8 rank;
	u8 n_null;
	u8 bit[SOL_REGION_ORDER];	/* frame bit that brought pivot i, ... */
	u8 top[SOL_REGION_ORDER];	/* ... and the cell's bit that it settles */
	u16 from[SOL_REGION_ORDER];	/* pivot i: frame bits ... */
	u32 image[SOL_REGION_ORDER];	/* ... and what they do to the cell */
	u16 null[SOL_REGION_ORDER];	/* frame bits that keep the cell */
	u16 carry[SOL_REGION_ORDER];	/* xor of null[0..i]: to the next sum */
	u32 *head;	/* by region, if linear: the cell of its first frame */
};

/* Solvers for @map on @n_frames frames, one for each of its ranges. NULL: no memory. */
struct sol_solver *sol_solvers_new(const struct sol_map *map, u64 n_frames);

/* Use the @n solvers @s from now on (NULL, 0: none). No call may be under way. */
void sol_solvers_install(struct sol_solver *s, u32 n);

/* The solver of @node's range with the highest frames below @pfn, or NULL. */
const struct sol_solver *sol_solver_below(u32 node, u64 pfn);

/* Regions that @node has, as a whole or in part. */
u32 sol_solver_regions(u32 node);

/**
 * sol_solve() - frame bits that change the cell
 * @s: a linear solver
 * @diff: by which the cell shall change
 * @order: of bits below 2^@order
 *
 * Return: the bits; -1: there are none.
 */
int sol_solve(const struct sol_solver *s, u32 diff, u32 order);

/* The @i-th sum of the null space, @i < 2^n_null, of a linear solver. */
u32 sol_null_sum(const struct sol_solver *s, u32 i);

#endif /* SOLOIST_SOLVER_H */
