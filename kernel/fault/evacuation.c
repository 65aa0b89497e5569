// SPDX-License-Identifier: GPL-2.0
/*
 * Evacuation, the last source of a request: frames of the group's colours that hold
 * page cache or memory of uncoloured tasks are made free; see request.c.
 *
 * One task of a group evacuates at a time. It tries several times with pauses, since
 * a page that is in use now may move later. If all tries fail the group is full on
 * that node: its faults fail at once for some time, longer each time, before one
 * evacuates again. So a task that keeps asking uses little CPU time.
 *
 * Locking: none of its own; see rungs.c. Pages move in the caller's context.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "../frames/evacuate.h"
#include "../frames/refill.h"
#include "../group/node_cells.h"
#include "rungs.h"

#define BATCH		32
#define FULL_SHIFTS		5	/* a group is full so long, doubled 5 times */
#define EVACUATION_BUDGET	(16 * SOL_WALK_BUDGET)	/* frames of a try */
#define CELL_BUDGET_MIN	64u

/* The next cell to evacuate, and how many cells there are; SOL_NO_CELL: none. */
static u32 next_to_evacuate(u16 id, int nid, u32 *n)
{
	u32 cell = SOL_NO_CELL, at;
	struct node_cells c;

	*n = 0;
	with_node_cells(&c, id, nid) {
		at = READ_ONCE(c.node->evacuate_cursor) % c.n;
		WRITE_ONCE(c.node->evacuate_cursor, at + 1);
		cell = c.cell[at];
		*n = c.n;
	}
	return cell;
}

/* List frames of @cell: free ones, or if @move those whose pages can move. */
static u32 list_frames(const struct sol_request *rq, u32 cell, bool move,
		       u32 *budget)
{
	if (move)
		return sol_evacuate(cell, rq->gfp, budget);
	sol_refill_retry(cell);
	return sol_refill(cell, BATCH, budget);
}

/* Go over all cells of the group; each has its part of the budget. */
static struct page *over_cells(const struct sol_request *rq, int nid, bool move)
{
	u32 left = EVACUATION_BUDGET, steps = 0, n, part, budget, cell;
	struct page *page = NULL;

	do {
		cell = next_to_evacuate(rq->id, nid, &n);
		if (cell == SOL_NO_CELL || fatal_signal_pending(current))
			break;
		part = max(EVACUATION_BUDGET / n, CELL_BUDGET_MIN);
		part = budget = min(part, left);
		if (list_frames(rq, cell, move, &budget))
			page = sol_from_lists(rq, nid);
		left -= part - budget;
		cond_resched();
	} while (!page && left && ++steps < n);
	sol_group_add_to(rq->id, looked, EVACUATION_BUDGET - left);
	return page;
}

/*
 * First take frames that are free: those in per-CPU lists, ours and the kernel's, and
 * those that no walk has come by. Then move pages. For a group that was full a
 * moment ago (@before) there is one such try.
 */
static struct page *evacuate(const struct sol_request *rq, int nid, bool before)
{
	struct page *page = NULL;

	if (!rq->tries) {
		sol_cpu_lists_flush();
		if (!before)
			sol_evacuate_drain(nid);
		page = sol_from_lists(rq, nid);
		if (!page && !before)
			page = over_cells(rq, nid, false);
	}
	return page ?: over_cells(rq, nid, true);
}

/*
 * May the caller evacuate? Not while the group is known to be full, nor while another
 * task of the group does; then @rq->again is set. *@before: the group was full
 * the last time.
 */
static bool begin_evacuation(struct sol_request *rq, int nid, bool *before)
{
	unsigned long until, now = jiffies;
	struct node_cells c;
	bool mine = false;

	with_node_cells(&c, rq->id, nid) {
		if (time_before(now, READ_ONCE(c.node->full_until)))
			continue;
		*before = READ_ONCE(c.node->full_times);
		until = READ_ONCE(c.node->evacuate_after);
		mine = !time_before(now, until) &&
		       cmpxchg(&c.node->evacuate_after, until,
			       now + SOL_EVACUATION_WAIT) == until;
		rq->again |= !mine;
	}
	return mine;
}

/*
 * If pages moved, more may: the next task of the group need not wait. If nothing
 * moved in the last try, the group is full for a while.
 */
static void end_evacuation(u16 id, int nid, bool found)
{
	struct node_cells c;
	u8 n;

	with_node_cells(&c, id, nid) {
		n = found ? 0 : READ_ONCE(c.node->full_times);
		WRITE_ONCE(c.node->evacuate_after, jiffies);
		if (!found)
			WRITE_ONCE(c.node->full_until,
				   jiffies + (SOL_EVACUATION_WAIT << n));
		WRITE_ONCE(c.node->full_times,
			   found ? 0 : min(n + 1, FULL_SHIFTS));
	}
}

struct page *sol_from_evacuation(struct sol_request *rq, int nid)
{
	bool before = false;
	struct page *page;

	if (!begin_evacuation(rq, nid, &before))
		return sol_from_lists(rq, nid);
	page = evacuate(rq, nid, before);
	if (page || before || rq->tries + 1 >= SOL_EVACUATIONS)
		end_evacuation(rq->id, nid, page);
	else
		rq->again = true;
	return page;
}
