// SPDX-License-Identifier: GPL-2.0
/*
 * Prefill: lists are filled ahead of need, with frames that are known to be zero.
 *
 * CAMC (4.2.3) fills its lists before the tasks run, so that a fault never waits for
 * a refill; its reversed design keeps all free memory in lists. A reserve here is
 * zeroed too, so that a fault need not clear the page. Free frames are taken first;
 * then what others have in the colours goes (evacuate.c). Frames that a task took from
 * its reserve come back with unknown content when they are freed:
 * sol_store_reserve() clears them and fills up. It ends also if tasks take frames from
 * the reserve as fast as they come.
 *
 * Locking: a cell's lock, for one frame, and a section of the lists for the frames of a
 * cell. May sleep, and yields between frames.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../command/rmdir.h"
#include "../group/group.h"
#include "../hook/hook.h"
#include "cpu_list.h"
#include "evacuate.h"
#include "prefill.h"
#include "refill.h"
#include "store.h"

#define TRIES	2	/* times the reserve that may come, where tasks take from it */
#define PART	(1u << 14)	/* frames that are looked at together: 64 MiB of small pages */

/* Zero a listed frame of @cell with unknown content. Return: was there one? */
static bool zero_one(u32 cell)
{
	unsigned long flags;
	bool is_zero = true;
	u32 pfn, n = 0;

	/* Held, not in use by nobody: as such evacuation knows the frames that it waits for. */
	sol_cell_lock_irqsave(cell, flags);
	if (sol_store.cell[cell].listed[0])
		n = sol_frames_hold(&sol_store, cell, false, &pfn, 1, &is_zero);
	sol_cell_unlock_irqrestore(cell, n ? -1 : 0, flags);
	if (!n)
		return false;
	clear_highpage(pfn_to_page(pfn));
	sol_cell_lock_irqsave(cell, flags);
	sol_frames_put(&sol_store, pfn, true);
	sol_cell_unlock_irqrestore(cell, 1, flags);
	return true;
}

/*
 * Do we zero frames ahead? Not if the kernel poisons or unmaps free ones: these are
 * zeroed when they are handed out, and any listed frame counts as reserved.
 */
static bool zeroing(void)
{
	return !static_branch_unlikely(&sol_debug_pages);
}

static u32 in_reserve(u32 cell)
{
	return zeroing() ? READ_ONCE(sol_store.cell[cell].listed[1]) :
			   sol_cell_listed(cell);
}

/* List more frames of @cell, wherever in its node they are. */
static u32 refill(u32 cell, u32 want)
{
	u32 budget = U32_MAX;

	return sol_refill(cell, want, &budget);
}

/*
 * List frames of @cell: at @first free ones; if there are none, some that can be made free.
 * @got: becomes how many. Return: there may be more of those.
 */
static bool list_some(struct sol_evacuation *e, u32 cell, bool first, u32 *got)
{
	u32 want = SOL_REFILL_MAX, budget = PART;

	*got = 0;
	if (first) {
		want = zeroing() ? sol_refill_batch(cell) : 1;
		*got = refill(cell, want);
	}
	if (!*got)
		*got = sol_evacuate(e, cell, want, false, &budget);
	return !*got && budget < PART && sol_evacuate_in_round(cell);
}

/* As list_some(), but where frames are zeroed @got becomes whether one was. */
static bool try_reserve(struct sol_evacuation *e, u32 cell, bool first, u32 *got)
{
	bool more = false;

	if (!zeroing())
		return list_some(e, cell, first, got);
	if (!sol_store.cell[cell].listed[0])
		more = list_some(e, cell, first, got);
	*got = zero_one(cell);
	return more;
}

/* Must the reserve of @dir's group end early? */
static bool is_over(const struct config_item *dir)
{
	return fatal_signal_pending(current) || sol_rmdir_waits(dir);
}

/* Add a frame to @cell's reserve, batch by batch. Return: how many came. */
static u32 reserve_more(struct sol_evacuation *e, u32 cell, const struct config_item *dir)
{
	bool more, first = true;
	int users;
	u32 got;

	do {
		users = sol_lists_begin();
		more = try_reserve(e, cell, first, &got);
		sol_lists_end(users);
		cond_resched();
		first = false;
	} while (!got && more && !is_over(dir));
	return got;
}

/* A copy of the group's cells, to go over with preemption on. */
static u32 *copy_cells(struct sol_group *group, u32 *n)
{
	const struct sol_cells *cells;
	u32 max, *copy;

	*n = 0;
	rcu_read_lock();
	cells = rcu_dereference(group->cells);
	max = cells ? cells->n : 0;
	rcu_read_unlock();
	copy = kvmalloc_array(max, sizeof(*copy), GFP_KERNEL);
	if (!max || !copy) {
		kvfree(copy);
		return NULL;
	}
	rcu_read_lock();
	cells = rcu_dereference(group->cells);
	if (cells) {
		*n = min(max, cells->n);
		memcpy(copy, cells->cell, *n * sizeof(*copy));
	}
	rcu_read_unlock();
	return copy;
}

/* One frame for each cell, so that all get the same share; at most @max. */
static u64 reserve_round(struct sol_evacuation *e, const u32 *cell, u32 n,
			 u64 max, const struct config_item *dir)
{
	u64 got = 0;
	u32 i;

	for (i = 0; i < n && got < max; i++)
		got += reserve_more(e, cell[i], dir);
	return got;
}

static u64 count_reserve(const u32 *cell, u32 n)
{
	u64 have = 0;
	u32 i;

	for (i = 0; i < n; i++)
		have += in_reserve(cell[i]);
	return have;
}

u64 sol_store_reserve(struct sol_group *group, const struct config_item *dir, u64 frames)
{
	struct sol_evacuation *e = sol_evacuation_new();
	u32 n, *cell = copy_cells(group, &n);
	u64 have, came = 0, got;
	u32 i;

	/* Free frames shall not be missed because some CPU keeps them. */
	sol_cpu_lists_flush();
	sol_evacuate_drain();
	for (i = 0; i < n; i++)
		sol_refill_retry(cell[i]);
	for (;;) {
		have = count_reserve(cell, n);
		if (!e || have >= frames || came > TRIES * frames || is_over(dir))
			break;
		got = reserve_round(e, cell, n, frames - have, dir);
		if (!got)
			break;
		came += got;
	}
	kvfree(cell);
	kfree(e);
	return have;
}

u64 sol_store_listed(struct sol_group *group)
{
	u32 n, i, *cell = copy_cells(group, &n);
	u64 sum = 0;

	for (i = 0; i < n; i++)
		sum += READ_ONCE(sol_store.cell[cell[i]].listed[0]) +
		       READ_ONCE(sol_store.cell[cell[i]].listed[1]);
	kvfree(cell);
	return sum;
}

/*
 * A batch for each cell, again and again until no cell gets any more. Memory that goes
 * offline waits for one cell's section at most.
 */
u64 sol_store_fill_all(void)
{
	const struct sol_map *map = READ_ONCE(sol_store.map);
	u32 i, n, n_cells = map ? map->n_cells : 0;
	u64 got = 0;
	int users;

	for (i = 0; i < n_cells; i++)
		sol_refill_retry(i);
	do {
		for (i = 0, n = 0; i < n_cells; i++) {
			if (fatal_signal_pending(current))
				return got + n;
			users = sol_lists_begin();
			n += refill(i, 32);
			sol_lists_end(users);
			cond_resched();
		}
		got += n;
	} while (n);
	return got;
}
