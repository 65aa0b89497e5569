// SPDX-License-Identifier: GPL-2.0
/*
 * Requests: where a page in colour comes from.
 *
 * A request tries one source after the other until one has a page. The trace calls
 * the sources rungs (trace/rung.h):
 *
 *   at hand    the per-CPU list (inline, in request.h); if the group backs off on
 *              the node, that of the next node
 *   listed     the lists of the group's cells on the node. The next cells in order
 *              are refilled first, so that all cells give the same share
 *   refilled   the frames of the group's cells, looked at one by one
 *   searched   the first blocks of the zones' free lists
 *   evacuated  frames of the group's colours that hold page cache or memory of
 *              uncoloured tasks (evacuation.c)
 *   exhausted  the group's policy: grow and begin again, fail, or spill
 *
 * All allowed nodes are tried down to the search, the nearest node first. Only a
 * task that would get a signal otherwise evacuates. CAMC's algorithm 2 has the
 * lists, one refill and an error.
 *
 * The work of a request is bounded. A source looks at a limited number of frames. If
 * it finds nothing the group backs off on that node, longer each time (struct
 * sol_node_state), and its faults look at the lists alone meanwhile. No other CPU
 * is interrupted.
 *
 * Locking: groups and their lists are looked up with preemption off. A request is a
 * section of sol_waiting, so that unloading waits for it. Code that uses lists
 * and may sleep is a section of the lists, too; growing is not, since it takes
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
#include "../group/node_cells.h"
#include "request.h"
#include "rungs.h"

typedef struct page *rung_fn(struct sol_request *rq, int nid);

static rung_fn *const rungs[] = {
	[SOL_LISTED] = sol_from_listed,
	[SOL_REFILLED] = sol_from_refill,
	[SOL_SEARCHED] = sol_from_search,
	[SOL_EVACUATED] = sol_from_evacuation,
};

/*
 * The nearest node that @rq allows and that is not in the bitmap @done; it is added
 * there. NUMA_NO_NODE: there is none.
 */
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
 * Take a page from the per-CPU list of a node farther away than those where the group
 * backs off. The list of the nearest node was asked before. @anywhere: the next
 * faults on this CPU may begin with that node.
 */
static struct page *from_remote_cpu_list(const struct sol_request *rq,
					 bool anywhere)
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

/* Try rungs @first to @last on each allowed node. */
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

/* A page that was locked, or on its way to an LRU list, may move later. */
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
	page = from_remote_cpu_list(rq, anywhere);
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
	 * A group that was removed meanwhile has no colours any more. It is not
	 * exhausted: any page will do now.
	 */
	if (!page && ask_group(rq, &cells) && !rq->target)
		note_exhausted(rq, none_allowed);
	ns = local_clock() - begin;
	sol_group_add_to(rq->id, fault[sol_time_order(ns)], 1);
	return page;
}
