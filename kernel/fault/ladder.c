// SPDX-License-Identifier: GPL-2.0
/*
 * The ladder: where a page in colour comes from.
 *
 *   at hand    this CPU's magazine (inline, in ladder.h); where the group rests
 *              on the node, that of the next one
 *   listed     the group's lists on the node; those of the cells whose turn it
 *              is are refilled first, so that all cells give alike
 *   refilled   the frames of its cells, one by one; a budget of them
 *   searched   the first blocks of the zones' free lists
 *   evacuated  frames of its colours that hold page cache or uncoloured memory
 *   exhausted  what the group says: grow (and begin again), fail or spill
 *
 * All allowed nodes, the nearest first, are asked for a page down to the
 * search; evacuating is for whom nothing else is left but a signal. CAMC's
 * algorithm 2 has the lists, one refill and an error.
 *
 * Bounded: a rung looks at a limited number of frames, and where it found
 * nothing the group does not come back for a while, longer each time (struct
 * sol_turn); meanwhile its faults look at the lists alone. No other CPU is
 * interrupted. Evacuating is done by one task of a group at a time, a few times
 * with pauses, for what is in use now may move later. Where all that was in vain
 * the group is full: its faults fail at once for some time, longer each time, and
 * one look follows. So a task that goes on asking gets little of a CPU for it.
 *
 * Locking: a group is looked up, and its lists are, with preemption off. The
 * whole of it is a section of sol_waiting, so that unloading waits; what uses
 * lists and may sleep is one of the lists', but not growing, which takes
 * sol_group_mutex.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/seqlock.h>
#include <linux/topology.h>

#include "../frames/evacuate.h"
#include "../frames/refill.h"
#include "../frames/search.h"
#include "../palette/life.h"
#include "../group/member.h"
#include "../hook/hook.h"
#include "../trace/trace.h"
#include "ladder.h"

#define SEARCH_REST	max(HZ / 100, 1)	/* doubled each time, ... */
#define SEARCH_RESTS	5
#define LOOKS		32	/* lists looked at with preemption off */
#define BATCH		32
#define EVACUATIONS	8	/* tries before the task is killed ... */
#define EVACUATION_WAIT	(HZ / 10)	/* ... with pauses between them */
#define FULLS		5	/* a group is full so long, doubled 5 times */
#define EVACUATION_BUDGET	(16 * SOL_WALK_BUDGET)	/* frames of a try */
#define CELL_BUDGET_MIN	64u

/* ---- The group's cells on a node ---- */

/* The cells of @id on a node; preemption is off or RCU's read lock held. */
struct here {
	struct sol_group *group;
	const struct sol_cells *cells;
	const u32 *cell;
	u32 n;
	struct sol_turn *turn;
};

static bool here_find(struct here *here, u16 id, int nid)
{
	here->group = group_get_fast(id);
	here->cells = here->group ?
		      rcu_dereference_check(here->group->cells,
					    rcu_read_lock_sched_held()) : NULL;
	if (!here->cells || nid >= SOL_MAX_NODES)
		return false;
	here->cell = here->cells->cell + here->cells->first[nid];
	here->n = here->cells->first[nid + 1] - here->cells->first[nid];
	if (!here->n)
		return false;
	here->turn = &here->group->turn[nid];
	return true;
}

/* The cell @turns after the group's cursor. */
static u32 here_index(const struct here *here, int nid, u32 turns)
{
	return sol_cells_turn(READ_ONCE(here->turn->cursor) % here->n, here->n,
			      here->cells->per_set[nid], turns);
}

/* A page of the cell that is @turns on; NULL: none listed, or no such cell. */
static struct page *take(const struct sol_request *rq, int nid, u32 turns)
{
	struct page *page = NULL;
	struct here here;
	u32 i;

	preempt_disable();
	if (here_find(&here, rq->id, nid) && turns < here.n) {
		i = here_index(&here, nid, turns);
		page = sol_store_take(here.cell[i], rq->id, rq->gfp, rq->table);
		if (page)
			WRITE_ONCE(here.turn->cursor,
				   sol_cells_next(i, here.n,
						  here.cells->per_set[nid]));
	}
	preempt_enable();
	return page;
}

static u32 cell_at(u16 id, int nid, u32 turns)
{
	u32 cell = SOL_NO_CELL;
	struct here here;

	preempt_disable();
	if (here_find(&here, id, nid) && turns < here.n)
		cell = here.cell[here_index(&here, nid, turns)];
	preempt_enable();
	return cell;
}

/* ---- Backing off ---- */

static bool rests(u16 id, int nid)
{
	struct here here;
	bool rests;

	preempt_disable();
	rests = !here_find(&here, id, nid) || sol_turn_rests(here.turn);
	preempt_enable();
	return rests;
}

/* Nothing found: not again for a while. Or something: at any time. */
static void note_search(u16 id, int nid, bool found)
{
	struct here here;
	u8 n;

	preempt_disable();
	if (here_find(&here, id, nid)) {
		n = READ_ONCE(here.turn->rests);
		if (!found) {
			WRITE_ONCE(here.turn->rest,
				   jiffies + (SEARCH_REST << n));
			WRITE_ONCE(here.turn->rests, min(n + 1, SEARCH_RESTS));
		} else if (n) {
			WRITE_ONCE(here.turn->rests, 0);
		}
	}
	preempt_enable();
}

/* ---- The rungs ---- */

typedef struct page *rung_fn(struct sol_request *rq, int nid);

/* Some lists of a group from the cursor on; *@at is where it goes on, 0: done. */
static struct page *look(const struct sol_request *rq, int nid, u32 *at)
{
	struct page *page = NULL;
	u32 i, turns = *at, end = turns + LOOKS;
	struct here here;

	*at = 0;
	preempt_disable();
	if (!here_find(&here, rq->id, nid) || turns >= here.n)
		goto out;
	i = here_index(&here, nid, turns);
	for (; turns < here.n && !page; turns++) {
		if (turns == end) {
			*at = turns;
			break;
		}
		if (sol_cell_listed(here.cell[i]))
			page = sol_store_take(here.cell[i], rq->id, rq->gfp,
					      rq->table);
		i = sol_cells_next(i, here.n, here.cells->per_set[nid]);
	}
	if (page)
		WRITE_ONCE(here.turn->cursor, i);
out:
	preempt_enable();
	return page;
}

/* Any list: a magazine of them, or else one by one. */
static struct page *from_lists(const struct sol_request *rq, int nid)
{
	struct page *page;
	u32 at = 0;

	page = sol_magazine_get(rq->id, nid, rq->gfp, rq->table, false);
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
	struct sol_group *g;

	if (!got)
		return 0;
	ns = local_clock() - begin;
	trace_soloist_refill(id, cell, got, ns);
	preempt_disable();
	g = group_get_fast(id);
	if (g) {
		sol_group_add(g, refills, 1);
		sol_group_add(g, refill[sol_time_order(ns)], 1);
	}
	preempt_enable();
	return got;
}

/*
 * Frames for the cells whose turn it is and that have none listed. One that is
 * hard to find spends only its part of the budget, not what others need.
 */
static void refill_turn(const struct sol_request *rq, int nid)
{
	u32 left = SOL_WALK_BUDGET, turns, cell, budget, listed = 0;

	if (rests(rq->id, nid))
		return;
	for (turns = 0; turns < SOL_LOOKS && listed < SOL_CLIPS; turns++) {
		cell = cell_at(rq->id, nid, turns);
		if (cell == SOL_NO_CELL)
			break;
		budget = min(left, SOL_WALK_BUDGET / SOL_CLIPS);
		left -= budget;
		if (sol_cell_listed(cell) ||
		    (!sol_cell_rests(cell) && refill(rq->id, cell, &budget)))
			listed++;
		left += budget;
	}
}

static struct page *from_turn(struct sol_request *rq, int nid)
{
	if (gfpflags_allow_blocking(rq->gfp))
		refill_turn(rq, nid);
	return from_lists(rq, nid);
}

static struct page *from_refill(struct sol_request *rq, int nid)
{
	u32 budget = SOL_WALK_BUDGET, turns, cell;
	struct page *page = NULL;

	if (rests(rq->id, nid))
		return NULL;
	for (turns = 0; budget && !page; turns++) {
		cell = cell_at(rq->id, nid, turns);
		if (cell == SOL_NO_CELL)
			break;
		if (!refill(rq->id, cell, &budget))
			continue;
		/* Or another task was quicker, or it is no good for a table. */
		page = take(rq, nid, turns);
	}
	return page;
}

static struct page *from_search(struct sol_request *rq, int nid)
{
	struct page *page = NULL;
	struct here here;
	u32 got = 0;

	if (rests(rq->id, nid))
		return NULL;
	rcu_read_lock();
	if (here_find(&here, rq->id, nid))
		got = sol_search(here.cell, here.n, nid, BATCH);
	rcu_read_unlock();
	trace_soloist_search(rq->id, nid, got);
	if (got)
		page = from_lists(rq, nid);
	note_search(rq->id, nid, page);
	return page;
}

/* The cell that the next step of an evacuation is about, and how many there are. */
static u32 next_to_evacuate(u16 id, int nid, u32 *n)
{
	u32 cell = SOL_NO_CELL, at;
	struct here here;

	*n = 0;
	preempt_disable();
	if (here_find(&here, id, nid)) {
		at = READ_ONCE(here.turn->at) % here.n;
		WRITE_ONCE(here.turn->at, at + 1);
		cell = here.cell[at];
		*n = here.n;
	}
	preempt_enable();
	return cell;
}

static void note_looked(u16 id, u32 frames)
{
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(id);
	if (g)
		sol_group_add(g, looked, frames);
	preempt_enable();
}

/* Look for frames of @cell: free ones, or if @move those that move. */
static u32 look_harder(const struct sol_request *rq, u32 cell, bool move,
		       u32 *budget)
{
	if (move)
		return sol_evacuate(cell, rq->gfp, budget);
	sol_refill_wake(cell);
	return sol_refill(cell, BATCH, budget);
}

/* Every cell of the group in turn, each with its part of the budget. */
static struct page *over_cells(const struct sol_request *rq, int nid, bool move)
{
	u32 left = EVACUATION_BUDGET, turns = 0, n, part, budget, cell;
	struct page *page = NULL;

	do {
		cell = next_to_evacuate(rq->id, nid, &n);
		if (cell == SOL_NO_CELL || fatal_signal_pending(current))
			break;
		part = max(EVACUATION_BUDGET / n, CELL_BUDGET_MIN);
		part = budget = min(part, left);
		if (look_harder(rq, cell, move, &budget))
			page = from_lists(rq, nid);
		left -= part - budget;
		cond_resched();
	} while (!page && left && ++turns < n);
	note_looked(rq->id, EVACUATION_BUDGET - left);
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
		sol_magazines_flush();
		if (!before)
			sol_evacuate_drain(nid);
		page = from_lists(rq, nid);
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
	struct here here;
	bool mine = false;

	preempt_disable();
	if (here_find(&here, rq->id, nid) &&
	    !time_before(now, READ_ONCE(here.turn->full))) {
		*before = READ_ONCE(here.turn->fulls);
		until = READ_ONCE(here.turn->evacuate);
		mine = !time_before(now, until) &&
		       cmpxchg(&here.turn->evacuate, until,
			       now + EVACUATION_WAIT) == until;
		rq->again |= !mine;
	}
	preempt_enable();
	return mine;
}

/*
 * Something moved, so more may: the next one of the group need not wait. Or
 * nothing did, for the last time: the group is full.
 */
static void end_evacuation(u16 id, int nid, bool found)
{
	struct here here;
	u8 n;

	preempt_disable();
	if (here_find(&here, id, nid)) {
		n = found ? 0 : READ_ONCE(here.turn->fulls);
		WRITE_ONCE(here.turn->evacuate, jiffies);
		if (!found)
			WRITE_ONCE(here.turn->full,
				   jiffies + (EVACUATION_WAIT << n));
		WRITE_ONCE(here.turn->fulls, found ? 0 : min(n + 1, FULLS));
	}
	preempt_enable();
}

static struct page *from_evacuation(struct sol_request *rq, int nid)
{
	bool before = false;
	struct page *page;

	if (!begin_evacuation(rq, nid, &before))
		return from_lists(rq, nid);
	page = evacuate(rq, nid, before);
	if (page || before || rq->tries + 1 >= EVACUATIONS)
		end_evacuation(rq->id, nid, page);
	else
		rq->again = true;
	return page;
}

static rung_fn *const rungs[] = {
	[SOL_LISTED] = from_turn,
	[SOL_REFILLED] = from_refill,
	[SOL_SEARCHED] = from_search,
	[SOL_EVACUATED] = from_evacuation,
};

/* ---- Down the ladder ---- */

/* The nearest node behind @done that @rq allows, done now, or NUMA_NO_NODE. */
static int next_node_near(const struct sol_request *rq, unsigned long *done)
{
	int nid, best = NUMA_NO_NODE;

	for_each_online_node(nid) {
		if (nid >= SOL_MAX_NODES || *done >> nid & 1 ||
		    !sol_request_allows(rq, nid))
			continue;
		if (best == NUMA_NO_NODE ||
		    node_distance(rq->nid, nid) < node_distance(rq->nid, best))
			best = nid;
	}
	if (best != NUMA_NO_NODE)
		*done |= 1ul << best;
	return best;
}

/*
 * From magazines of nodes beyond those where the group rests; the nearest one's
 * was asked before. @anywhere: the next faults on this CPU may begin there.
 */
static struct page *at_hand_beyond(const struct sol_request *rq, bool anywhere)
{
	struct page *page = NULL;
	unsigned long done = 0;
	int nid = next_node_near(rq, &done);

	while (!page && nid != NUMA_NO_NODE && rests(rq->id, nid)) {
		nid = next_node_near(rq, &done);
		if (nid != NUMA_NO_NODE)
			page = sol_magazine_get(rq->id, nid, rq->gfp,
						rq->table, true);
	}
	if (page && anywhere)
		sol_magazine_away(rq->id, nid);
	return page;
}

/* Rungs @first to @last, on all nodes. */
static struct page *climb(struct sol_request *rq, enum sol_rung first,
			  enum sol_rung last)
{
	struct page *page = NULL;
	unsigned long done = 0;
	int nid;

	while (!page) {
		nid = next_node_near(rq, &done);
		if (nid == NUMA_NO_NODE)
			break;
		for (rq->rung = first; rq->rung <= last; rq->rung++) {
			page = rungs[rq->rung](rq, nid);
			if (page)
				break;
		}
	}
	return page;
}

static struct page *climb_with_lists(struct sol_request *rq,
				     enum sol_rung first, enum sol_rung last)
{
	int users = sol_lists_begin();
	struct page *page = climb(rq, first, last);

	sol_lists_end(users);
	return page;
}

/* The group's policy, and how many cells it has now; false: does not colour. */
static bool ask_group(struct sol_request *rq, u32 *cells)
{
	const struct sol_cells *c;
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(rq->id);
	c = g ? rcu_dereference_sched(g->cells) : NULL;
	rq->exhaust = c && !rq->modest ? READ_ONCE(g->exhaust) : SOL_SPILL;
	*cells = c ? c->n : 0;
	preempt_enable();
	return c;
}

/* Another colour for the current task's group. @seen: cells found empty. */
static bool grow(u16 id, u32 seen)
{
	struct sol_group *g = sol_member_group(current);
	bool grown = false;

	if (g) {
		if (g->id == id)
			grown = !sol_group_grow(g, seen);
		sol_group_put(g);
	}
	return grown;
}

/* What was locked, or on its way to the LRU, may move later. */
static struct page *climb_patiently(struct sol_request *rq)
{
	struct page *page;

	for (rq->tries = 0; rq->tries < EVACUATIONS; rq->tries++) {
		rq->again = false;
		page = climb_with_lists(rq, SOL_EVACUATED, SOL_EVACUATED);
		if (page || !rq->again || fatal_signal_pending(current))
			return page;
		schedule_timeout_killable(EVACUATION_WAIT);
	}
	return NULL;
}

static struct page *climb_down(struct sol_request *rq)
{
	struct page *page;
	u32 seen;

	do {
		if (!ask_group(rq, &seen))
			return NULL;
		page = climb_with_lists(rq, SOL_LISTED, SOL_SEARCHED);
	} while (!page && rq->exhaust == SOL_GROW &&
		 !fatal_signal_pending(current) && grow(rq->id, seen));
	if (!page && rq->exhaust != SOL_SPILL)
		page = climb_patiently(rq);
	return page;
}

/* Do cpuset and memory policy leave @rq no node of its group's colours? */
static bool contradicted(const struct sol_request *rq)
{
	struct here here;
	bool none = true;
	int nid;

	preempt_disable();
	for_each_online_node(nid)
		if (sol_request_allows(rq, nid) && here_find(&here, rq->id, nid))
			none = false;
	preempt_enable();
	return none;
}

static void note_exhausted(struct sol_request *rq, bool none_allowed)
{
	struct sol_group *g;

	rq->rung = SOL_EXHAUSTED;
	trace_soloist_exhausted(rq->id, rq->nid, rq->exhaust);
	preempt_disable();
	g = group_get_fast(rq->id);
	if (g && rcu_access_pointer(g->cells)) {
		sol_group_add(g, exhausted, 1);
		if (none_allowed)
			sol_group_add(g, contradicted, 1);
		if (rq->exhaust == SOL_SPILL)
			sol_group_add(g, spilled, 1);
	}
	preempt_enable();
}

static void note_time(u16 id, u64 ns)
{
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(id);
	if (g)
		sol_group_add(g, fault[sol_time_order(ns)], 1);
	preempt_enable();
}

/* current->mems_allowed, which another task may be changing. */
static nodemask_t stable_cpuset(void)
{
	unsigned int seq;
	nodemask_t mems;

	do {
		seq = read_seqcount_begin(&current->mems_allowed_seq);
		mems = current->mems_allowed;
	} while (read_seqcount_retry(&current->mems_allowed_seq, seq));
	return mems;
}

noinline struct page *sol_request_slow(struct sol_request *rq)
{
	u64 begin = local_clock();
	bool anywhere = rq->nid == NUMA_NO_NODE;
	struct page *page;
	nodemask_t mems;
	bool none_allowed;
	int waiting;
	u32 cells;

	if (anywhere) {
		rq->nid = numa_node_id();
		rq->cpuset = &current->mems_allowed;
	}
	if (rq->cpuset) {
		mems = stable_cpuset();
		rq->cpuset = &mems;
	}
	page = at_hand_beyond(rq, anywhere);
	if (page) {
		rq->rung = SOL_AT_HAND;
		rq->cpuset = NULL;
		return page;
	}
	if (!gfpflags_allow_blocking(rq->gfp)) {
		ask_group(rq, &cells);
		page = climb(rq, SOL_LISTED, SOL_LISTED);
	} else {
		waiting = srcu_read_lock(&sol_waiting);
		page = climb_down(rq);
		srcu_read_unlock(&sol_waiting, waiting);
	}
	none_allowed = !page && contradicted(rq);
	rq->cpuset = NULL;
	/*
	 * A group that lost its colours on the way, as one that is removed does,
	 * is not exhausted: any page will do now.
	 */
	if (!page && ask_group(rq, &cells) && !rq->target)
		note_exhausted(rq, none_allowed);
	note_time(rq->id, local_clock() - begin);
	return page;
}
