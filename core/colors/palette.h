/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Palette: who owns which colours, and automatic assignment.
 *
 * An owner (a group of the kernel, a task of the simulator) holds a colour
 * set: bank sets and LLC colours, each a bitmap. The palette counts the owners
 * of every bank set and LLC colour and answers: may this owner take these
 * (exclusive owners share with nobody), and which should a new one get (CAMC
 * 3.4: least used, disjoint from everybody else's, on the node of the task's
 * cores; real-time and other owners on different controllers where there are
 * enough).
 *
 * The caller locks (kernel: one mutex for all assignments) and owns all
 * memory; sol_palette_bytes() says how much.
 */
#ifndef SOLOIST_PALETTE_H
#define SOLOIST_PALETTE_H

#include "../map/addrmap.h"
#include "../text/numlist.h"

/**
 * struct sol_colors - colours of one owner
 * @sets: bitmap of bank sets, SOL_LONGS(map->n_bank_sets)
 * @llc: bitmap of LLC colours, SOL_LONGS(map->n_llc)
 * @by_bank: @sets restricts (TintMalloc: using_bank); else any bank set will do
 * @by_llc: @llc restricts (TintMalloc: using_llc); else any LLC colour will do
 * @exclusive: no other owner has a colour of those that restrict
 * @realtime: keep the owner apart from others by controller
 */
struct sol_colors {
	unsigned long *sets;
	unsigned long *llc;
	bool by_bank;
	bool by_llc;
	bool exclusive;
	bool realtime;
};

/* Per bank set or LLC colour. */
struct sol_use {
	u32 owners;		/* owners whose colour set names it */
	u32 exclusive;		/* of these, exclusive ones (0 or 1) */
	u32 realtime;		/* of these, real-time ones */
};

struct sol_palette {
	const struct sol_map *map;
	struct sol_use *set;	/* n_bank_sets */
	struct sol_use *llc;	/* n_llc */
	/*
	 * Frames still in use in a bank set or LLC colour, whoever had it (a
	 * colour is recycled only when its last page is gone). NULL: none.
	 */
	u64 (*in_use)(const void *ctx, u32 bank_set);
	const void *ctx;
};

/* Bytes that sol_palette_init() needs behind @mem for @map. */
size_t sol_palette_bytes(const struct sol_map *map);
void sol_palette_init(struct sol_palette *p, const struct sol_map *map,
		      void *mem);

/**
 * sol_palette_change() - an owner gets other colours
 * @p: the palette
 * @old: the owner's colours; NULL: none yet
 * @new: its new ones; NULL: none any more
 * @err: the reason of a refusal
 *
 * Return: 0; -EBUSY: an exclusive owner has one of them, or another owner has one if
 * this one is exclusive; -EINVAL: no cell of @new can hold a page. Refused, nothing
 * has changed.
 */
int sol_palette_change(struct sol_palette *p, const struct sol_colors *old,
		       const struct sol_colors *new, struct sol_err *err);

/**
 * struct sol_want - a request for automatic assignment
 * @n_sets: bank sets, at least 1
 * @n_llc: LLC colours; 0: do not colour the LLC
 * @near: bitmap of the nodes that the task's cores are on; 0: any
 * @allowed: bitmap of the nodes that are allowed at all (cpuset, mbind)
 * @strict: only nodes of @near will do
 * @realtime: the owner is a real-time one
 * @llc: LLC colours that the owner has already, a bitmap: each set must have a page in one of
 *	them; NULL: it has none
 */
struct sol_want {
	u32 n_sets;
	u32 n_llc;
	u64 near;
	u64 allowed;
	bool strict;
	bool realtime;
	const unsigned long *llc;
};

/**
 * sol_palette_assign() - choose free colours: no owner has them, no frame is in use
 * @p: the palette; it does not change
 * @want: the request
 * @out: becomes the colours, but for ->exclusive; both bitmaps must be zeroed
 * @err: how many were free, and where, if there are not enough
 *
 * A pair of bank set and LLC colour that can't hold a page is never chosen.
 *
 * Return: 0 or -ENOSPC.
 */
int sol_palette_assign(const struct sol_palette *p, const struct sol_want *want,
		       struct sol_colors *out, struct sol_err *err);

/**
 * sol_colors_cells() - cells that can hold pages
 * @map: the address map
 * @colors: of these colours
 * @cell: becomes the cells, ascending, and so node by node
 * @max: elements of @cell
 *
 * Return: how many there are, also beyond @max.
 */
u32 sol_colors_cells(const struct sol_map *map, const struct sol_colors *colors,
		     u32 *cell, u32 max);

/**
 * sol_cells_per_set() - how many cells each bank set has
 * @map: the address map
 * @cell: cells of one node, ascending
 * @n: how many, at least 1
 *
 * Pages are handed out bank set by bank set and not LLC colour by LLC colour, so that
 * neighbouring pages never lie in one bank.
 *
 * Return: how many; 1 if the sets do not have the same number.
 */
u32 sol_cells_per_set(const struct sol_map *map, const u32 *cell, u32 n);

/* Index of the cell @steps steps after the @i-th of @n; @per_set as above. */
static inline u32 sol_cells_advance(u32 i, u32 n, u32 per_set, u32 steps)
{
	u32 sets = n / per_set;
	u32 at = ((u64)(i % per_set) * sets + i / per_set + steps) % n;

	return at % sets * per_set + at / sets;
}

/* One step from the @i-th, without a division: the fast path does this. */
static inline u32 sol_cells_next(u32 i, u32 n, u32 per_set)
{
	i += per_set;
	if (i < n)
		return i;
	i -= n - 1;
	return i < per_set ? i : 0;
}

/* Is there such a cell at all? */
bool sol_colors_any(const struct sol_map *map, const struct sol_colors *colors);

/* Bytes of the machine's memory in these colours. */
u64 sol_colors_bytes(const struct sol_map *map, const struct sol_colors *colors);

#endif /* SOLOIST_PALETTE_H */
