// SPDX-License-Identifier: GPL-2.0
/*
 * The rungs of the ladder that look at lists and at free frames; see request.c.
 *
 * A rung looks at a limited number of cells or frames. Where it found nothing the
 * group does not come back for a while, longer each time (struct sol_turn);
 * meanwhile its faults look at the lists alone.
 *
 * Locking: a group is looked up, and its lists are, with preemption off.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/clock.h>

#include "../frames/refill.h"
#include "../frames/search.h"
#include "../trace/trace.h"
#include "node_cells.h"
#include "rungs.h"

#define SEARCH_BACKOFF	max(HZ / 100, 1)	/* doubled each time, ... */
#define SEARCH_BACKOFF_SHIFTS	5
#define SCAN_LISTS		32	/* lists looked at with preemption off */
#define BATCH		32

/* A page of the cell that is @steps on; NULL: none listed, or no such cell. */
static struct page *take(const struct sol_request *rq, int nid, u32 steps)
{
	struct page *page = NULL;
	struct node_cells c;
	u32 i;

	with_node_cells(&c, rq->id, nid) {
		if (steps >= c.n)
			continue;
		i = node_cells_index(&c, steps);
		page = sol_store_take(c.cell[i], rq->id, rq->gfp, rq->table);
		if (page)
			WRITE_ONCE(c.node->cursor,
				   sol_cells_next(i, c.n, c.per_set));
	}
	return page;
}

static u32 cell_at(u16 id, int nid, u32 steps)
{
	u32 cell = SOL_NO_CELL;
	struct node_cells c;

	with_node_cells(&c, id, nid)
		if (steps < c.n)
			cell = c.cell[node_cells_index(&c, steps)];
	return cell;
}

/* ---- Backing off ---- */

bool sol_request_backs_off(u16 id, int nid)
{
	struct node_cells c;
	bool backs_off = true;

	with_node_cells(&c, id, nid)
		backs_off = sol_node_backs_off(c.node);
	return backs_off;
}

/* Nothing found: not again for a while. Or something: at any time. */
static void note_search(u16 id, int nid, bool found)
{
	struct node_cells c;
	u8 n;

	with_node_cells(&c, id, nid) {
		n = READ_ONCE(c.node->search_failures);
		if (!found) {
			WRITE_ONCE(c.node->search_after, jiffies + (SEARCH_BACKOFF << n));
			WRITE_ONCE(c.node->search_failures, min(n + 1, SEARCH_BACKOFF_SHIFTS));
		} else if (n) {
			WRITE_ONCE(c.node->search_failures, 0);
		}
	}
}

/* ---- The rungs ---- */

/* Some lists of a group from the cursor on; *@at is where it goes on, 0: done. */
static struct page *look(const struct sol_request *rq, int nid, u32 *at)
{
	struct page *page = NULL;
	u32 i, steps = *at, end = steps + SCAN_LISTS;
	struct node_cells c;

	*at = 0;
	with_node_cells(&c, rq->id, nid) {
		if (steps >= c.n)
			continue;
		i = node_cells_index(&c, steps);
		for (; steps < c.n && !page; steps++) {
			if (steps == end) {
				*at = steps;
				break;
			}
			if (sol_cell_listed(c.cell[i]))
				page = sol_store_take(c.cell[i], rq->id,
						      rq->gfp, rq->table);
			i = sol_cells_next(i, c.n, c.per_set);
		}
		if (page)
			WRITE_ONCE(c.node->cursor, i);
	}
	return page;
}

/* Any list: a magazine of them, or else one by one. */
struct page *sol_from_lists(const struct sol_request *rq, int nid)
{
	struct page *page;
	u32 at = 0;

	page = sol_cpu_list_get(rq->id, nid, rq->gfp, rq->table, false);
	while (!page) {
		page = look(rq, nid, &at);
		if (!at || at >= SOL_WALK_BUDGET)
			break;
	}
	return page;
}

/* Frames for @cell of group @id. How many were listed. */
static u32 refill(u16 id, u32 cell, u32 *budget)
{
	u64 begin = local_clock(), ns;
	u32 got = sol_refill(cell, sol_refill_batch(cell), budget);

	if (!got)
		return 0;
	ns = local_clock() - begin;
	trace_soloist_refill(id, cell, got, ns);
	sol_with_group(g, id) {
		sol_group_add(g, refills, 1);
		sol_group_add(g, refill[sol_time_order(ns)], 1);
	}
	return got;
}

/*
 * Frames for the cells whose turn it is and that have none listed. One that is
 * hard to find spends only its part of the budget, not what others need.
 */
static void refill_turn(const struct sol_request *rq, int nid)
{
	u32 left = SOL_WALK_BUDGET, steps, cell, budget, listed = 0;

	if (sol_request_backs_off(rq->id, nid))
		return;
	for (steps = 0; steps < SOL_SCAN_CELLS && listed < SOL_BATCHES; steps++) {
		cell = cell_at(rq->id, nid, steps);
		if (cell == SOL_NO_CELL)
			break;
		budget = min(left, SOL_WALK_BUDGET / SOL_BATCHES);
		left -= budget;
		if (sol_cell_listed(cell) ||
		    (!sol_cell_backs_off(cell) && refill(rq->id, cell, &budget)))
			listed++;
		left += budget;
	}
}

struct page *sol_from_turn(struct sol_request *rq, int nid)
{
	if (gfpflags_allow_blocking(rq->gfp))
		refill_turn(rq, nid);
	return sol_from_lists(rq, nid);
}

struct page *sol_from_refill(struct sol_request *rq, int nid)
{
	u32 budget = SOL_WALK_BUDGET, steps, cell;
	struct page *page = NULL;

	if (sol_request_backs_off(rq->id, nid))
		return NULL;
	for (steps = 0; budget && !page; steps++) {
		cell = cell_at(rq->id, nid, steps);
		if (cell == SOL_NO_CELL)
			break;
		if (!refill(rq->id, cell, &budget))
			continue;
		/* Or another task was quicker, or it is no good for a table. */
		page = take(rq, nid, steps);
	}
	return page;
}

struct page *sol_from_search(struct sol_request *rq, int nid)
{
	struct page *page = NULL;
	struct node_cells c;
	u32 got = 0;

	if (sol_request_backs_off(rq->id, nid))
		return NULL;
	rcu_read_lock();
	if (node_cells_find(&c, rq->id, nid))
		got = sol_search(c.cell, c.n, nid, BATCH);
	rcu_read_unlock();
	trace_soloist_search(rq->id, nid, got);
	if (got)
		page = sol_from_lists(rq, nid);
	note_search(rq->id, nid, page);
	return page;
}
