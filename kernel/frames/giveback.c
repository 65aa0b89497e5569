// SPDX-License-Identifier: GPL-2.0
/*
 * Giving back: counting listed frames, and returning them to the buddy allocator.
 *
 * The shrinker leaves each cell the frames that groups reserved in it
 * (sol_cell_state.reserve). These are given back only when the kernel would kill
 * something otherwise, or when the map or the module goes.
 *
 * Locking: a cell's lock, for one frame at a time. The cells exist until the caller's
 * section of the lists ends.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "../hook/hook.h"
#include "giveback.h"
#include "cpu_list.h"
#include "refill.h"
#include "store.h"

typedef void drain_fn(struct zone *zone);
DEFINE_STATIC_CALL_NULL(sol_drain_zones, drain_fn);

static atomic64_t unkept;
static unsigned long shrunk[SOL_MAX_NODES];	/* jiffies; 0: never */

/* ---- Counting ---- */

/*
 * Return: the number of cells, 0 without a map. The cells exist until
 * sol_lists_end(): a new map waits for that.
 */
static u32 cells_begin(int *users) __acquires(&sol_lists_users)
{
	const struct sol_map *map;

	*users = sol_lists_begin();
	map = smp_load_acquire(&sol_store.map);	/* pairs with sol_remap() */
	return map ? map->n_cells : 0;
}

void sol_store_stats(struct sol_store_stats *stats)
{
	u64 in_cpu_lists;
	int users;
	u32 n = cells_begin(&users), i;

	memset(stats, 0, sizeof(*stats));
	for (i = 0; i < n; i++) {
		const struct sol_cell *c = &sol_store.cell[i];

		stats->listed += READ_ONCE(c->listed[0]);
		stats->listed += READ_ONCE(c->listed[1]);
		stats->zero += READ_ONCE(c->listed[1]);
		stats->used += READ_ONCE(c->used);
		stats->kept += min(READ_ONCE(sol_cell_states[i].reserve),
				   sol_cell_listed(i));
	}
	sol_lists_end(users);
	in_cpu_lists = min(sol_cpu_lists_count(), stats->used);
	stats->used -= in_cpu_lists;
	stats->listed += in_cpu_lists;
	stats->taken = atomic64_read(&sol_taken);
	stats->given = atomic64_read(&sol_given);
	stats->unkept = atomic64_read(&unkept);
	stats->lost = atomic64_read(&sol_lost);
}

/* Frames in per-CPU lists count as used, unless these were flushed. */
u64 sol_store_used_in(const void *unused, u32 bank_set)
{
	u32 n_llc = sol_store.map->n_llc;
	u64 sum = 0;
	u32 i;

	for (i = bank_set * n_llc; i < (bank_set + 1) * n_llc; i++)
		sum += READ_ONCE(sol_store.cell[i].used);
	return sum;
}

/* While lists change, what one CPU counted may be seen and what another did not. */
unsigned long sol_store_count(int nid)
{
	long sum = 0;
	int cpu;

	if (nid >= SOL_MAX_NODES)
		return 0;
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(sol_spare, cpu).frames[nid]);
	return max(sum, 0L);
}

/* ---- Giving back ---- */

/* A listed frame. @spare: none that a group reserved, though several give back at once. */
static u32 drain_one(u32 cell, bool spare)
{
	u32 pfn = SOL_NO_FRAME;
	unsigned long flags;

	sol_cell_lock_irqsave(cell, flags);
	if (!spare || sol_cell_spare(cell))
		pfn = sol_frames_drain(&sol_store, cell);
	sol_cell_unlock_irqrestore(cell, pfn == SOL_NO_FRAME ? 0 : -1, flags);
	return pfn;
}

unsigned long sol_store_shrink(int nid, unsigned long n)
{
	static u32 begin;	/* racy: another cell each time */
	unsigned long given = 0;
	u32 cells = 0, first = 0, i, cell, pfn;
	int users;

	if (cells_begin(&users))
		cells = sol_map_node_cells(sol_store.map, nid, &first);
	for (i = 0; i < cells && given < n; i++) {
		cell = first + (READ_ONCE(begin) + i) % cells;
		while (given < n && sol_cell_spare(cell)) {
			pfn = drain_one(cell, true);
			if (pfn == SOL_NO_FRAME)
				break;
			sol_store_give(pfn);
			given++;
		}
	}
	WRITE_ONCE(begin, READ_ONCE(begin) + i);
	sol_lists_end(users);
	if (given && nid < SOL_MAX_NODES)
		WRITE_ONCE(shrunk[nid], jiffies | 1);	/* 0: never */
	return given;
}

bool sol_store_shrunk_lately(int nid)
{
	unsigned long at = READ_ONCE(shrunk[nid]);

	return at && time_before(jiffies, at + HZ);
}

/* Give back all listed frames. Return: how many were of @nodes, a bitmap. */
static u64 drain_all(u64 nodes)
{
	u64 given = 0, of_nodes = 0;
	int users, nid;
	u32 n = cells_begin(&users), i, pfn;

	sol_cpu_lists_flush();
	for (i = 0; i < n; i++) {
		/* Its frames come free now: the next walk looks at them again. */
		if (sol_cell_listed(i))
			sol_refill_retry(i);
		while (sol_cell_listed(i)) {
			pfn = drain_one(i, false);
			if (pfn == SOL_NO_FRAME)
				break;
			nid = page_to_nid(pfn_to_page(pfn));
			of_nodes += nid < SOL_MAX_NODES && nodes >> nid & 1;
			sol_store_give(pfn);
			if (!(++given % 1024))
				cond_resched();
		}
		cond_resched();
	}
	sol_lists_end(users);
	/* From the kernel's per-CPU lists to where every CPU can have them. */
	if (given)
		static_call(sol_drain_zones)(NULL);
	return of_nodes;
}

void sol_store_drain_all(void)
{
	drain_all(0);
}

u64 sol_store_drain_oom(u64 nodes)
{
	struct sol_store_stats before;

	sol_store_stats(&before);
	atomic64_add(before.kept, &unkept);
	return drain_all(nodes);
}

/* Frames of one step of an eviction; they are freed outside the lock. */
struct sol_evicted {
	u32 n;
	u32 pfn[64];
};

static void note_evicted(void *ctx, u32 pfn)
{
	struct sol_evicted *ev = ctx;

	ev->pfn[ev->n++] = pfn;
}

void sol_store_evict(u64 start, u64 end)
{
	struct sol_evicted ev;
	unsigned long flags;
	int users;
	u32 n = cells_begin(&users), i, left;

	sol_cpu_lists_flush();
	start = min_t(u64, start, sol_store.n_frames);
	end = min_t(u64, end, sol_store.n_frames);
	for (i = 0; i < n; i++) {
		do {
			ev.n = 0;
			sol_cell_lock_irqsave(i, flags);
			left = sol_frames_evict(&sol_store, i, start, end,
						ARRAY_SIZE(ev.pfn),
						note_evicted, &ev);
			sol_cell_unlock_irqrestore(i, -(long)ev.n, flags);
			while (ev.n)
				sol_store_give(ev.pfn[--ev.n]);
			cond_resched();
		} while (!left);
	}
	sol_lists_end(users);
}

int sol_giveback_init(void)
{
	return sol_bind(sol_drain_zones, "drain_all_pages");
}

/* The hooks are off, so that nobody takes or returns a frame. */
void sol_giveback_exit(void)
{
	sol_store_drain_all();
}
