// SPDX-License-Identifier: GPL-2.0
/*
 * Solvers: the map's equations, solved for the frames of a cell. See solver.h.
 */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "solver.h"

static struct sol_solver *solvers;	/* ascending, as the map's ranges */
static u32 n_solvers;

static void solver_add(struct sol_solver *s, u8 bit, u32 image)
{
	u16 from = 1u << bit;
	u32 i;

	for (i = 0; i < s->rank; i++) {
		if (image >> s->top[i] & 1) {
			image ^= s->image[i];
			from ^= s->from[i];
		}
	}
	if (!image) {
		s->null[s->n_null++] = from;
		return;
	}
	s->bit[s->rank] = bit;
	s->top[s->rank] = fls(image) - 1;
	s->image[s->rank] = image;
	s->from[s->rank++] = from;
}

static u32 regions_of(const struct sol_solver *s)
{
	if (s->start >= s->end)
		return 0;
	return DIV_ROUND_UP(s->end, SOL_REGION) - s->start / SOL_REGION;
}

/* A map may have more memory than this machine, which has @n_frames. */
static void solver_bound(struct sol_solver *s, const struct sol_range *r,
			 u64 n_frames)
{
	s->start = min(r->start >> PAGE_SHIFT, n_frames);
	s->end = min(r->end >> PAGE_SHIFT, n_frames);
	s->node = r->node;
}

/* @s has its bounds. @head: room for a cell of each of its regions. */
static void solver_make(struct sol_solver *s, const struct sol_map *map,
			const struct sol_range *r, u32 *head)
{
	u64 probe = ALIGN(r->start >> PAGE_SHIFT, SOL_REGION);
	u32 bit, cell, i;
	u64 pfn;

	s->linear = !((r->start ^ r->base) >> PAGE_SHIFT & (SOL_REGION - 1)) &&
		    probe + SOL_REGION <= s->end && !map->layout[r->layout].ways;
	if (!s->linear)
		return;
	cell = sol_map_cell(map, probe);
	for (bit = 0; bit < SOL_REGION_ORDER; bit++)
		solver_add(s, bit, cell ^ sol_map_cell(map, probe ^ 1ul << bit));
	for (i = 0; i < s->n_null; i++)
		s->carry[i] = s->null[i] ^ (i ? s->carry[i - 1] : 0);
	s->head = head;
	for (i = 0, pfn = s->start; pfn < s->end; i++) {
		head[i] = sol_map_cell(map, pfn);
		pfn = ALIGN(pfn + 1, SOL_REGION);
	}
}

/* Pivots are in the order of the bits that brought them. */
int sol_solve(const struct sol_solver *s, u32 diff, u32 order)
{
	u32 i, x = 0;

	for (i = 0; i < s->rank && s->bit[i] < order; i++) {
		if (diff >> s->top[i] & 1) {
			diff ^= s->image[i];
			x ^= s->from[i];
		}
	}
	return diff ? -1 : (int)x;
}

const struct sol_solver *sol_solver_below(u32 node, u64 pfn)
{
	u32 i;

	for (i = n_solvers; i-- > 0;)
		if (solvers[i].node == node && solvers[i].start < pfn &&
		    solvers[i].start < solvers[i].end)
			return &solvers[i];
	return NULL;
}

u32 sol_null_sum(const struct sol_solver *s, u32 i)
{
	u32 bit, x = 0;

	for (bit = 0; i; bit++, i >>= 1)
		if (i & 1)
			x ^= s->null[bit];
	return x;
}

u32 sol_solver_regions(u32 node)
{
	u32 i, n = 0;

	for (i = 0; i < n_solvers; i++)
		if (solvers[i].node == node)
			n += regions_of(&solvers[i]);
	return n;
}

struct sol_solver *sol_solvers_new(const struct sol_map *map, u64 n_frames)
{
	size_t size = map->n_ranges * sizeof(struct sol_solver);
	struct sol_solver *s, one;
	u32 i, *head;

	for (i = 0; i < map->n_ranges; i++) {
		solver_bound(&one, &map->range[i], n_frames);
		size += regions_of(&one) * sizeof(*head);
	}
	s = kvzalloc(size, GFP_KERNEL);
	if (!s)
		return NULL;
	head = (u32 *)(s + map->n_ranges);
	for (i = 0; i < map->n_ranges; i++) {
		solver_bound(&s[i], &map->range[i], n_frames);
		solver_make(&s[i], map, &map->range[i], head);
		head += regions_of(&s[i]);
	}
	return s;
}

void sol_solvers_install(struct sol_solver *s, u32 n)
{
	swap(s, solvers);
	n_solvers = n;
	kvfree(s);
}
