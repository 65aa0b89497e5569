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
 * Groups of the same colours have a reserve each: what a group has of a cell's frames are those
 * that the others' reserves leave.
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
#define AT_ONCE	256	/* cells that are counted together */
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

/* ---- Counting ---- */

/**
 * struct sum - over cells of a group
 * @have: frames that count
 * @others: frames that other groups reserve there
 */
struct sum {
	u64 have;
	u64 others;
};

/* Add some cells of @group, from the one at @from on. Return: the next; 0: none is left. */
static u32 add_cells(struct sol_group *group, u32 from, u32 (*count)(u32 cell), struct sum *sum)
{
	const struct sol_cells *cells;
	u32 i = from, end = 0, n = 0, reserve;

	rcu_read_lock();
	cells = rcu_dereference(group->cells);
	if (cells) {
		n = cells->n;
		end = min(n, from + AT_ONCE);
	}
	for (; i < end; i++) {
		reserve = READ_ONCE(sol_cell_states[cells->cell[i]].reserve);
		sum->others += reserve - min(reserve, READ_ONCE(cells->reserve));
		sum->have += count(cells->cell[i]);
	}
	rcu_read_unlock();
	return end < n ? end : 0;
}

/* What @count has of all cells of @group. */
static struct sum add_all(struct sol_group *group, u32 (*count)(u32 cell))
{
	struct sum sum = { 0 };
	u32 next = 0;

	do {
		next = add_cells(group, next, count, &sum);
		cond_resched();
	} while (next);
	return sum;
}

/* The same, but for what other groups reserve. */
static u64 count_own(struct sol_group *group, u32 (*count)(u32 cell))
{
	struct sum sum = add_all(group, count);

	return sum.have - min(sum.have, sum.others);
}

u64 sol_store_listed(struct sol_group *group)
{
	return add_all(group, sol_cell_listed).have;
}

u64 sol_store_reserved(struct sol_group *group)
{
	return count_own(group, sol_cell_listed);
}

/* ---- Filling ---- */

/* A copy of the group's cells, to go over with preemption on. NULL: no memory. */
static u32 *copy_cells(struct sol_group *group, u32 *n)
{
	const struct sol_cells *cells;
	u32 max, *copy;

	*n = 0;
	rcu_read_lock();
	cells = rcu_dereference(group->cells);
	max = cells ? cells->n : 0;
	rcu_read_unlock();
	copy = kvmalloc_array(max + 1, sizeof(*copy), GFP_KERNEL);
	if (!copy)
		return NULL;
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

s64 sol_store_reserve(struct sol_group *group, const struct config_item *dir, u64 frames)
{
	struct sol_evacuation *e = sol_evacuation_new();
	u32 i, n, *cell = copy_cells(group, &n);
	u64 came = 0, got = 1;
	s64 have = -ENOMEM;

	if (!e || !cell)
		goto out;
	/* Free frames shall not be missed because some CPU keeps them. */
	sol_cpu_lists_flush();
	sol_evacuate_drain();
	for (i = 0; i < n; i++)
		sol_refill_retry(cell[i]);
	for (;;) {
		have = count_own(group, in_reserve);
		if (!got || have >= (s64)frames || came > TRIES * frames || is_over(dir))
			break;
		got = reserve_round(e, cell, n, frames - have, dir);
		came += got;
	}
out:
	kvfree(cell);
	kfree(e);
	return have;
}

/*
 * A batch for each cell, again and again until no cell gets any more. Memory that goes
 * offline waits for one cell's section at most.
 */
bool sol_store_fill_all(void)
{
	const struct sol_map *map = READ_ONCE(sol_store.map);
	u32 i, n, n_cells = map ? map->n_cells : 0;
	int users;

	for (i = 0; i < n_cells; i++)
		sol_refill_retry(i);
	do {
		for (i = 0, n = 0; i < n_cells; i++) {
			if (fatal_signal_pending(current))
				return false;
			users = sol_lists_begin();
			n += refill(i, 32);
			sol_lists_end(users);
			cond_resched();
		}
	} while (n);
	return true;
}
