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

/* Colours of one owner. An empty bitmap with its `by_` flag off: any. */
struct sol_colors {
	unsigned long *sets;	/* SOL_LONGS(map->n_bank_sets) */
	unsigned long *llc;	/* SOL_LONGS(map->n_llc) */
	bool by_bank;		/* sets restricts (TintMalloc: using_bank) */
	bool by_llc;		/* llc restricts (TintMalloc: using_llc) */
	bool exclusive;		/* shares no bank set (if by_bank), no LLC colour (if by_llc) */
	bool realtime;		/* keep apart from others by controller */
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

/*
 * Replace @old (NULL: none yet) of one owner by @new (NULL: gives all back).
 * Either all of it happens or nothing: -EBUSY when an exclusive owner stands
 * in the way, -EINVAL when no cell of @new can hold a page; words in @err.
 */
int sol_palette_change(struct sol_palette *p, const struct sol_colors *old,
		       const struct sol_colors *new, struct sol_err *err);

/* What automatic assignment is asked for. */
struct sol_want {
	u32 n_sets;		/* bank sets, at least 1 */
	u32 n_llc;		/* LLC colours; 0: do not colour the LLC */
	u64 near;		/* bitmap of nodes the task's cores are on; 0: any */
	u64 allowed;		/* bitmap of nodes allowed at all (cpuset, mbind) */
	bool strict;		/* only `near` nodes will do */
	bool realtime;
};

/*
 * Choose free colours (no owner, no frame in use) into @out, whose bitmaps (both) the
 * caller zeroed; sets by_bank, by_llc and realtime too, but leaves exclusive
 * to the caller and does not change the palette. Never a pair that can't hold
 * a page. -ENOSPC with words in @err: how many were free, where.
 */
int sol_palette_assign(const struct sol_palette *p, const struct sol_want *want,
		       struct sol_colors *out, struct sol_err *err);

/*
 * Cells of @colors that can hold pages, ascending (so: node by node), into
 * @cell[max]; returns how many there are, also beyond @max.
 */
u32 sol_colors_cells(const struct sol_map *map, const struct sol_colors *colors,
		     u32 *cell, u32 max);

/*
 * Pages go round over the @n ascending cells of one node, @n > 0, bank set by
 * bank set and not LLC colour by LLC colour, so that neighbours never meet in a
 * bank. This tells how many cells each set has; 1 if that is not even.
 */
u32 sol_cells_per_set(const struct sol_map *map, const u32 *cell, u32 n);

/* The cell @steps steps after the @i-th of @n, @per_set as above. */
static inline u32 sol_cells_advance(u32 i, u32 n, u32 per_set, u32 steps)
{
	u32 sets = n / per_set;
	u32 turn = ((u64)(i % per_set) * sets + i / per_set + steps) % n;

	return turn % sets * per_set + turn / sets;
}

/* One turn from the @i-th, without a division: it is on the way of each page. */
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
