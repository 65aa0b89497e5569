// SPDX-License-Identifier: GPL-2.0
/*
 * The last rung of the ladder: frames of the group's colours that hold page cache
 * or uncoloured memory become free; see request.c.
 *
 * One task of a group evacuates at a time, a few times with pauses, for what is in
 * use now may move later. Where all of it was in vain the group is full: its faults
 * fail at once for some time, longer each time, and one look follows. So a task
 * that goes on asking gets little of a CPU for it.
 *
 * Locking: none of its own; see rungs.c. Frames move in the caller's context.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "../frames/evacuate.h"
#include "../frames/refill.h"
#include "node_cells.h"
#include "rungs.h"

#define BATCH		32
#define FULL_SHIFTS		5	/* a group is full so long, doubled 5 times */
#define EVACUATION_BUDGET	(16 * SOL_WALK_BUDGET)	/* frames of a try */
#define CELL_BUDGET_MIN	64u

/* The cell that the next step of an evacuation is about, and how many there are. */
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

/* Look for frames of @cell: free ones, or if @move those that move. */
static u32 look_harder(const struct sol_request *rq, u32 cell, bool move,
		       u32 *budget)
{
	if (move)
		return sol_evacuate(cell, rq->gfp, budget);
	sol_refill_retry(cell);
	return sol_refill(cell, BATCH, budget);
}

/* Every cell of the group in turn, each with its part of the budget. */
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
		if (look_harder(rq, cell, move, &budget))
			page = sol_from_lists(rq, nid);
		left -= part - budget;
		cond_resched();
	} while (!page && left && ++steps < n);
	sol_group_add_to(rq->id, looked, EVACUATION_BUDGET - left);
	return page;
}

/*
 * At first frames that are free: those that CPUs keep to themselves, ours and
 * theirs, and those that no walk came by; then what moves. Of a group that was
 * full a moment ago all is looked at in one go.
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
 * May the caller evacuate? One of the group does at a time; @rq->again: not now.
 * @before: it was full before. Where it is known to be, nobody may.
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
 * Something moved, so more may: the next one of the group need not wait. Or
 * nothing did, for the last time: the group is full.
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
		WRITE_ONCE(c.node->full_times, found ? 0 : min(n + 1, FULL_SHIFTS));
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
