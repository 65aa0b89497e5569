// SPDX-License-Identifier: GPL-2.0
/*
 * The ladder: where a page in colour comes from.
 *
 *   at hand    this CPU's magazine (inline, in request.h); where the group backs_off
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
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/seqlock.h>
#include <linux/topology.h>

#include "../group/member.h"
#include "../hook/hook.h"
#include "../palette/colors.h"
#include "../trace/trace.h"
#include "node_cells.h"
#include "request.h"
#include "rungs.h"

typedef struct page *rung_fn(struct sol_request *rq, int nid);

static rung_fn *const rungs[] = {
	[SOL_LISTED] = sol_from_turn,
	[SOL_REFILLED] = sol_from_refill,
	[SOL_SEARCHED] = sol_from_search,
	[SOL_EVACUATED] = sol_from_evacuation,
};

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
 * From magazines of nodes beyond those where the group backs_off; the nearest one's
 * was asked before. @anywhere: the next faults on this CPU may begin there.
 */
static struct page *from_cpu_list_beyond(const struct sol_request *rq, bool anywhere)
{
	struct page *page = NULL;
	unsigned long done = 0;
	int nid = next_node_near(rq, &done);

	while (!page && nid != NUMA_NO_NODE && sol_request_backs_off(rq->id, nid)) {
		nid = next_node_near(rq, &done);
		if (nid != NUMA_NO_NODE)
			page = sol_cpu_list_get(rq->id, nid, rq->gfp,
						rq->table, true);
	}
	if (page && anywhere)
		sol_cpu_lists_go_remote(rq->id, nid);
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
	const struct sol_cells *c = NULL;

	rq->exhaust = SOL_SPILL;
	*cells = 0;
	sol_with_group(g, rq->id) {
		c = rcu_dereference_sched(g->cells);
		if (c && !rq->modest)
			rq->exhaust = READ_ONCE(g->exhaust);
		*cells = c ? c->n : 0;
	}
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

	for (rq->tries = 0; rq->tries < SOL_EVACUATIONS; rq->tries++) {
		rq->again = false;
		page = climb_with_lists(rq, SOL_EVACUATED, SOL_EVACUATED);
		if (page || !rq->again || fatal_signal_pending(current))
			return page;
		schedule_timeout_killable(SOL_EVACUATION_WAIT);
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
	struct node_cells c;
	bool none = true;
	int nid;

	for_each_online_node(nid)
		if (sol_request_allows(rq, nid))
			with_node_cells(&c, rq->id, nid)
				none = false;
	return none;
}

static void note_exhausted(struct sol_request *rq, bool none_allowed)
{
	rq->rung = SOL_EXHAUSTED;
	trace_soloist_exhausted(rq->id, rq->nid, rq->exhaust);
	sol_with_group(g, rq->id) {
		if (!rcu_access_pointer(g->cells))
			continue;
		sol_group_add(g, exhausted, 1);
		if (none_allowed)
			sol_group_add(g, contradicted, 1);
		if (rq->exhaust == SOL_SPILL)
			sol_group_add(g, spilled, 1);
	}
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
	u64 begin = local_clock(), ns;
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
	page = from_cpu_list_beyond(rq, anywhere);
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
	ns = local_clock() - begin;
	sol_group_add_to(rq->id, fault[sol_time_order(ns)], 1);
	return page;
}
