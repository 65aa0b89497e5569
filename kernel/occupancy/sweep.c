// SPDX-License-Identifier: GPL-2.0
/*
 * Sweep: all frames of a group's colours, from the lowest address upwards.
 *
 * A refill walks over one cell at a time, because it stops as soon as it has a few
 * frames. A sweep wants all frames of many cells. It goes over memory once, region by
 * region, and asks for each frame whether its cell is one of the set. That is 10 ns or
 * so for each frame of the machine, however many cells there are.
 *
 * A sweep may look at one region of so many that have memory. The region is another one of
 * each stretch, so that a pattern in memory with the stretch's period does not deceive it.
 *
 * Locking: sol_group_mutex while the colours are noted. A section of the lists for the
 * frames of a region, since their memory may go offline (keep/unplug.c); it ends where a
 * visitor rests. The processor may be given away after each region.
 */
#include <linux/bitmap.h>
#include <linux/hash.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "../frames/array.h"
#include "../frames/store.h"
#include "../group/group.h"
#include "../hook/hook.h"
#include "sweep.h"

#define REGION_ORDER	10
#define REGION		(1ul << REGION_ORDER)

int sol_sweep_begin(struct sol_sweep *sweep, struct sol_group *group)
{
	const struct sol_cells *cells;
	unsigned long *bits;
	int err = -ENODATA;
	u32 i;

	*sweep = (struct sol_sweep){ .one_of = 1 };
	if (!sol_store.map)
		return err;
	bits = kvcalloc(BITS_TO_LONGS(sol_store.map->n_cells), sizeof(long),
			GFP_KERNEL);
	if (!bits)
		return -ENOMEM;
	mutex_lock(&sol_group_mutex);
	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	for (i = 0; cells && i < cells->n; i++)
		__set_bit(cells->cell[i], bits);
	if (cells && cells->n)
		err = 0;
	mutex_unlock(&sol_group_mutex);
	sweep->cells = bits;
	if (err)
		sol_sweep_end(sweep);
	return err;
}

void sol_sweep_end(struct sol_sweep *sweep)
{
	kvfree(sweep->cells);
	sweep->cells = NULL;
}

bool sol_sweep_has(const struct sol_sweep *sweep, u64 pfn)
{
	u32 cell = sol_map_cell(sol_store.map, pfn);

	return cell != SOL_NO_CELL && test_bit(cell, sweep->cells);
}

/* The first region with memory from @region on; past the last one: there is none. */
static u64 next_region(u64 region)
{
	u64 n = DIV_ROUND_UP((u64)sol_store.n_frames, REGION);

	for (; region < n && !sol_array_has(region << REGION_ORDER); region++)
		cond_resched();
	return region;
}

#define for_each_region(region)						\
	for (region = next_region(0);					\
	     region << REGION_ORDER < sol_store.n_frames;		\
	     region = next_region(region + 1))

u64 sol_sweep_regions(void)
{
	u64 region, n = 0;

	for_each_region(region)
		n++;
	return n;
}

/* Is the @i-th region the one of its stretch? */
static bool is_drawn(u64 i, u32 one_of)
{
	u32 at = i % one_of;

	return at == hash_64(i - at, 32) % one_of;
}

/* Visit frames from *@pfn on, until the visitor rests. All are online, or none. */
static int visit_some(struct sol_sweep *sweep, u64 *pfn, u64 end)
{
	int users = sol_lists_begin(), ret = 0;

	if (*pfn < end && !pfn_to_online_page(*pfn))
		*pfn = end;
	for (; *pfn < end && !ret; ++*pfn) {
		if (!sol_sweep_has(sweep, *pfn))
			continue;
		sweep->seen++;
		ret = sweep->visit(sweep->ctx, *pfn);
	}
	sol_lists_end(users);
	return ret;
}

static int sweep_region(struct sol_sweep *sweep, u64 region)
{
	u64 pfn = region << REGION_ORDER;
	u64 end = min(pfn + REGION, (u64)sol_store.n_frames);
	int ret;

	do {
		ret = visit_some(sweep, &pfn, end);
		if (ret == SOL_SWEEP_RESTS)
			ret = sweep->rest(sweep->ctx);
	} while (pfn < end && !ret);
	return ret;
}

int sol_sweep_run(struct sol_sweep *sweep)
{
	u32 one_of = max(sweep->one_of, 1u);
	u64 region, i = 0;
	int ret;

	for_each_region(region) {
		if (!is_drawn(i++, one_of))
			continue;
		ret = sweep_region(sweep, region);
		cond_resched();
		if (!ret)
			ret = sweep->over(sweep->ctx);
		if (ret)
			return ret;
	}
	return 0;
}
