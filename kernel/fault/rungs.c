// SPDX-License-Identifier: GPL-2.0
/*
 * The sources of a request that look at lists and at free frames; request.c says
 * in which order they are tried.
 *
 * Each looks at a limited number of cells or frames. If a search finds nothing, the
 * group backs off on the node, longer each time (struct sol_node_state), and its
 * faults look at the lists alone meanwhile.
 *
 * Locking: groups and their lists are looked up with preemption off.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/clock.h>

#include "../frames/refill.h"
#include "../frames/search.h"
#include "../trace/trace.h"
#include "../group/node_cells.h"
#include "rungs.h"

#define SEARCH_BACKOFF	max(HZ / 100, 1)	/* doubled each time, ... */
#define SEARCH_BACKOFF_SHIFTS	5
#define SCAN_LISTS		32	/* lists looked at with preemption off */
#define BATCH		32

/* A page of the cell @steps after the cursor; NULL: none listed, or no such cell. */
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

/* The cell @steps after the cursor; SOL_NO_CELL: there is none. */
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
	bool waits = true;

	with_node_cells(&c, id, nid)
		waits = sol_node_backs_off(c.node);
	return waits;
}

/* After a search: if it found nothing, the next one has to wait for a while. */
static void note_search(u16 id, int nid, bool found)
{
	struct node_cells c;
	u8 n;

	with_node_cells(&c, id, nid) {
		n = READ_ONCE(c.node->search_failures);
		if (!found) {
			WRITE_ONCE(c.node->search_after,
				   jiffies + (SEARCH_BACKOFF << n));
			WRITE_ONCE(c.node->search_failures,
				   min(n + 1, SEARCH_BACKOFF_SHIFTS));
		} else if (n) {
			WRITE_ONCE(c.node->search_failures, 0);
		}
	}
}

/* ---- The rungs ---- */

/*
 * A page from some lists of a group, beginning *@at cells after the cursor. *@at
 * becomes where to go on; 0: all lists were looked at.
 */
static struct page *scan_lists(const struct sol_request *rq, int nid,
			       u32 *at)
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

struct page *sol_from_lists(const struct sol_request *rq, int nid)
{
	struct page *page;
	u32 at = 0;

	page = sol_cpu_list_get(rq->id, nid, rq->gfp, rq->table, false);
	while (!page) {
		page = scan_lists(rq, nid, &at);
		if (!at || at >= SOL_WALK_BUDGET)
			break;
	}
	return page;
}

/* List frames of @cell for group @id. Return: how many. */
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
 * List frames of the next cells after the cursor that have none. A cell whose frames
 * are hard to find spends only its own part of the budget.
 */
static void refill_next(const struct sol_request *rq, int nid)
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

struct page *sol_from_listed(struct sol_request *rq, int nid)
{
	if (gfpflags_allow_blocking(rq->gfp))
		refill_next(rq, nid);
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
		/* NULL: another task took it, or it does not fit a table. */
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
