// SPDX-License-Identifier: GPL-2.0
/*
 * Search: free frames are found in the zones' free lists. A walk over a cell's frames
 * (refill.c) may spend its budget on frames in use; the free blocks themselves may
 * tell sooner. The largest are looked at first: a block that is larger than the
 * highest bit on which colours depend has frames of every cell.
 *
 * Locking: the zone's lock, while a limited number of blocks is noted down. Their
 * cells are worked out afterwards; taking a frame shows whether it is still free.
 */
#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/mmzone.h>

#include "refill.h"
#include "search.h"
#include "solver.h"

#define BLOCKS		64	/* noted down in all ... */
#define OF_A_LIST	8	/* ... and of one list */
#define LOOK_MAX	64	/* frames of a block, where no solver helps */

/* The cells that are wanted: ascending, all of one node. */
struct targets {
	const u32 *cell;
	u32 n;
};

static bool is_target(const struct targets *t, u32 cell)
{
	u32 low = 0, high = t->n;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (t->cell[mid] == cell)
			return true;
		if (t->cell[mid] < cell)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/* As target_in_block(), for a range without a solver: look at some frames. */
static u32 look_through_block(const struct targets *t, u64 head, u32 order)
{
	u64 end = head + min(1u << order, LOOK_MAX), pfn;

	for (pfn = head; pfn < end; pfn++)
		if (is_target(t, sol_map_cell(sol_store.map, pfn)))
			return pfn;
	return SOL_NO_FRAME;
}

/*
 * A frame of a target in the free block of 2^@order at @head, or SOL_NO_FRAME.
 * The cells of a block are that of its head, changed by any sum of the pivots.
 */
static u32 target_in_block(const struct targets *t, u64 head, u32 order)
{
	const struct sol_solver *s = sol_solver_of(head);
	u32 cell, pivots = 0, i, bit, x;

	cell = s ? sol_map_cell(sol_store.map, head) : SOL_NO_CELL;
	if (cell == SOL_NO_CELL)
		return SOL_NO_FRAME;
	if (!s->linear)
		return look_through_block(t, head, order);
	while (pivots < s->rank && s->bit[pivots] < order)
		pivots++;
	for (i = 0, x = 0; ; x ^= s->from[bit], cell ^= s->image[bit]) {
		if (is_target(t, cell))
			return head ^ x;
		if (++i >> pivots)
			return SOL_NO_FRAME;
		bit = __ffs(i);	/* Gray code */
	}
}

/* Free blocks, as they were under the zone's lock. */
struct noted {
	u32 n;
	u32 pfn[BLOCKS];
	u8 order[BLOCKS];
};

/* Under the zone's lock. */
static void note_list(struct noted *noted, struct list_head *list, u32 order)
{
	struct page *page;
	u32 seen = 0;

	list_for_each_entry(page, list, buddy_list) {
		if (seen++ == OF_A_LIST || noted->n == BLOCKS)
			break;
		noted->pfn[noted->n] = page_to_pfn(page);
		noted->order[noted->n++] = order;
	}
}

static void note_zone(struct noted *noted, struct zone *zone)
{
	static const int types[] = {
		MIGRATE_MOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE,
	};
	unsigned long flags;
	int order, i;

	noted->n = 0;
	spin_lock_irqsave(&zone->lock, flags);
	for (order = SOL_REGION_ORDER; order >= 0; order--)
		for (i = 0; i < ARRAY_SIZE(types); i++)
			note_list(noted,
				  &zone->free_area[order].free_list[types[i]],
				  order);
	spin_unlock_irqrestore(&zone->lock, flags);
}

u32 sol_search(const u32 *cell, u32 n, u32 node, u32 want)
{
	struct targets t = { .cell = cell, .n = n };
	struct sol_refill f = { .node = node, .want = want };
	struct noted noted;
	u32 z, i, pfn;

	for (z = ZONE_MOVABLE + 1; z-- > 0 && f.got < want;) {
		struct zone *zone = &NODE_DATA(node)->node_zones[z];

		if (!populated_zone(zone) || !sol_refill_zone_ok(&f, zone))
			continue;
		note_zone(&noted, zone);
		for (i = 0; i < noted.n && f.got < want; i++) {
			pfn = target_in_block(&t, noted.pfn[i],
					      noted.order[i]);
			if (pfn >= sol_store.n_frames)
				continue;
			f.cell = sol_map_cell(sol_store.map, pfn);
			sol_refill_take(&f, pfn);
		}
	}
	return f.got;
}
