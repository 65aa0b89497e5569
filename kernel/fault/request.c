// SPDX-License-Identifier: GPL-2.0
/*
 * Requests: where a page in colour comes from.
 *
 * The trace calls the places rungs (trace/rung.h):
 *
 *   at hand    the per-CPU list (inline, in request.h); if the near node is dry for
 *              the group, that of the next node
 *   supplied   the lists of the group's cells on the node, after a wait until supply/
 *              has filled those of the next cells in order, so that all give the same
 *              share
 *   listed     the same lists without a wait: the caller may not sleep, or the node is
 *              dry: supply found nothing a moment ago
 *   exhausted  the group's policy: grow and begin again, fail, or spill
 *
 * All allowed nodes are asked, the nearest first. A group grows only if its colours
 * are short. If the node's memory is, another colour would not help. A task that
 * would get a signal otherwise asks again until the group counts as full: a page that
 * is in use now may move later. CAMC's algorithm 2 has the lists, one refill and an
 * error.
 *
 * A request does no work of its own beyond a look at the lists. It walks no zone, moves
 * no page, and neither interrupts nor drains another CPU. It waits for a second at most
 * for each pass of supply, and for SOL_PATIENCE answers at most. A wait that ends without
 * an answer says nothing of the colours: supply had no CPU, or is not done. A task waits a
 * minute for it, so that a busy machine does not end the task; who faults for another one
 * does not, for it may hold locks that others need.
 *
 * Locking: groups and their lists are looked up with preemption off. A request is a
 * section of sol_waiting, so that unloading waits for it. It is none of the lists:
 * growing takes sol_group_mutex.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/topology.h>

#include "../compat/nodes.h"
#include "../frames/want.h"
#include "../group/member.h"
#include "../group/node_cells.h"
#include "../hook/hook.h"
#include "../palette/colors.h"
#include "../trace/trace.h"
#include "request.h"

#define SCAN_LISTS	32	/* lists looked at with preemption off ... */
#define SCAN_MAX	4096u	/* ... and in all */
#define PAUSE		(HZ / 10)	/* before supply is asked again */
#define UNANSWERED	(60 * HZ)	/* so long at most, if it does not answer */

/* ---- Lists ---- */

/*
 * A frame from some lists of a group, beginning *@at cells after the cursor. *@at
 * becomes where to go on; 0: all lists were looked at. Return: @taken is one.
 */
static bool scan_lists(const struct sol_request *rq, int nid, u32 *at,
		       struct sol_taken *taken)
{
	bool got = false;
	u32 i, steps = *at, end = steps + SCAN_LISTS;
	struct node_cells c;

	*at = 0;
	with_node_cells(&c, rq->id, nid) {
		if (steps >= c.n)
			continue;
		i = node_cells_index(&c, steps);
		for (; steps < c.n && !got; steps++) {
			if (steps == end) {
				*at = steps;
				break;
			}
			if (sol_cell_listed(c.cell[i]))
				got = sol_store_take(c.cell[i], rq->id, rq->gfp,
						     rq->use, taken);
			i = sol_cells_next(i, c.n, c.per_set);
		}
		if (got)
			WRITE_ONCE(c.node->cursor, i);
	}
	return got;
}

/* A page from any list of the group: through the per-CPU list, or one by one. */
static struct page *from_lists(const struct sol_request *rq, int nid)
{
	struct sol_taken taken;
	struct page *page;
	u32 at = 0;

	page = sol_cpu_list_get(rq->id, nid, rq->gfp, rq->use, false);
	while (!page) {
		if (scan_lists(rq, nid, &at, &taken))
			return sol_page_out(taken.pfn, rq->gfp, taken.is_zero, rq->use);
		if (!at || at >= SCAN_MAX)
			break;
	}
	return page;
}

/* ---- Nodes ---- */

/* Is the node dry for group @id, or has the group no cell there? */
static bool dry(u16 id, int nid)
{
	struct node_cells c;
	bool is_dry = true;

	with_node_cells(&c, id, nid)
		is_dry = sol_node_dry(c.node);
	return is_dry;
}

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

int sol_request_nearest(const struct sol_request *rq)
{
	unsigned long done = 0;

	return next_node_near(rq, &done);
}

/*
 * Take a page from the per-CPU list of a node farther away than those that are dry for
 * the group. The list of the nearest node was asked before. @anywhere: the next
 * faults on this CPU may begin with that node.
 */
static struct page *from_remote_cpu_list(const struct sol_request *rq,
					 bool anywhere)
{
	struct page *page = NULL;
	unsigned long done = 0;
	int nid = next_node_near(rq, &done);

	while (!page && nid != NUMA_NO_NODE && dry(rq->id, nid)) {
		nid = next_node_near(rq, &done);
		if (nid != NUMA_NO_NODE)
			page = sol_cpu_list_get(rq->id, nid, rq->gfp,
						rq->use, true);
	}
	if (page && anywhere)
		sol_cpu_lists_go_remote(rq->id, nid);
	return page;
}

/* After a wait for supply, unless the node is dry, or the request may not sleep. */
static struct page *from_node(struct sol_request *rq, int nid)
{
	rq->rung = SOL_LISTED;
	if (gfpflags_allow_blocking(rq->gfp) && !dry(rq->id, nid)) {
		rq->rung = SOL_SUPPLIED;
		rq->told &= sol_want_wait(rq->id, nid);
	}
	return from_lists(rq, nid);
}

/* From the allowed nodes, the nearest first. */
static struct page *from_nodes(struct sol_request *rq)
{
	struct page *page = NULL;
	unsigned long done = 0;
	int nid;

	rq->told = true;
	while (!page && !fatal_signal_pending(current)) {
		nid = next_node_near(rq, &done);
		if (nid == NUMA_NO_NODE)
			break;
		page = from_node(rq, nid);
	}
	return page;
}

/* ---- What if there is none ---- */

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

/* The current task's group, if it is group @id; with a reference. */
static struct sol_group *own_group(u16 id)
{
	struct sol_group *g = sol_member_group(current);

	if (g && g->id != id) {
		sol_group_put(g);
		g = NULL;
	}
	return g;
}

/* Another colour for the current task's group. @seen: cells found empty. */
static bool grow(u16 id, u32 seen)
{
	struct sol_group *g = own_group(id);
	bool grown = false;

	if (g) {
		grown = !sol_group_grow(g, seen);
		sol_group_put(g);
	}
	return grown;
}

/* Jiffies for which answers that do not come are waited for. */
static unsigned long unanswered(u16 id)
{
	struct sol_group *g = own_group(id);

	if (!g)
		return SOL_PATIENCE * HZ;
	sol_group_put(g);
	return UNANSWERED;
}

/**
 * struct verdict - what supply's last passes said of the allowed nodes
 * @full: the group is full on all of them
 * @colors_short: they found no frame, and on one at least not for want of memory
 * @found: one found frames, which others took first
 */
struct verdict {
	bool full;
	bool colors_short;
	bool found;
};

static struct verdict ask_supply(const struct sol_request *rq)
{
	u32 n = 0, n_full = 0, n_vain = 0, n_short = 0;
	struct node_cells c;
	int nid;

	for_each_online_node(nid) {
		if (nid >= SOL_MAX_NODES || !sol_request_allows(rq, nid))
			continue;
		with_node_cells(&c, rq->id, nid) {
			bool none = !sol_want_supplied(nid);

			n++;
			n_full += none || sol_node_full(c.node);
			n_vain += none || READ_ONCE(c.node->outcome) != SOL_FOUND;
			n_short += none || READ_ONCE(c.node->outcome) == SOL_NO_MEMORY;
		}
	}
	return (struct verdict){
		.full = n_full == n,
		.colors_short = n_vain == n && (!n || n_short < n),
		.found = n_vain < n,
	};
}

/*
 * It tries several times: supply's last answer may be a moment old, if a pass outlasts a
 * wait, and a page that was locked, or on its way to an LRU list, may move later. A try
 * does not count if others took its frames first, since supply has more.
 */
static struct page *from_anywhere(struct sol_request *rq)
{
	unsigned long begin = jiffies, answered = begin;
	bool may_grow = true;
	struct verdict said;
	struct page *page;
	u32 seen, tries = 0;

	for (;;) {
		if (!ask_group(rq, &seen))
			return NULL;
		page = from_nodes(rq);
		if (page || rq->exhaust == SOL_SPILL ||
		    fatal_signal_pending(current))
			return page;
		said = ask_supply(rq);
		if (rq->exhaust == SOL_GROW && said.colors_short && may_grow) {
			may_grow = grow(rq->id, seen);
			if (may_grow)
				continue;
		}
		if (rq->told) {
			tries += !said.found;
			if (said.full || tries == SOL_PATIENCE ||
			    time_after(jiffies, answered + SOL_PATIENCE * HZ))
				return NULL;
		} else {
			answered = jiffies;
			if (time_after(jiffies, begin + unanswered(rq->id)))
				return NULL;
		}
		schedule_timeout_killable(said.found ? 1 : PAUSE);
	}
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
		rq->cpuset = sol_task_mems(current);
	}
	if (rq->cpuset) {
		mems = sol_stable_mems();
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
		page = from_nodes(rq);
	} else {
		waiting = srcu_read_lock(&sol_waiting);
		page = from_anywhere(rq);
		srcu_read_unlock(&sol_waiting, waiting);
	}
	none_allowed = !page && contradicted(rq);
	rq->cpuset = NULL;
	/*
	 * A group that was removed meanwhile has no colours any more. It is not
	 * exhausted: any page will do now. Nor is that of a task which looked no
	 * further because it is about to end.
	 */
	if (!page && ask_group(rq, &cells) && !rq->target &&
	    !fatal_signal_pending(current))
		note_exhausted(rq, none_allowed);
	ns = local_clock() - begin;
	sol_group_add_to(rq->id, fault[sol_time_order(ns)], 1);
	return page;
}
