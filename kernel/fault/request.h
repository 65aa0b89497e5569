/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ladder: a request for a page in colour, and what becomes of it.
 *
 * One function answers all of them: faults, page tables, targets of migrations.
 * The rungs stand one under the other; a request goes down until one has a page.
 * Every rung does a bounded amount of work, so a request does.
 */
#ifndef SOLOIST_REQUEST_H
#define SOLOIST_REQUEST_H

#include <linux/gfp_types.h>
#include <linux/nodemask.h>

#include "../frames/cpu_list.h"
#include "../trace/rung.h"

/**
 * struct sol_request - a request for one page
 * @id: of the group whose colours it shall have
 * @gfp: may it sleep, reclaim; must it be zero
 * @table: a page table: nothing that must be movable
 * @modest: a page out of colour will do: no effort beyond a search
 * @target: of a migration: counted there if there is none
 * @nid: first choice; NUMA_NO_NODE: near the CPU
 * @allowed: the memory policy's nodes; NULL: anywhere
 * @cpuset: the cpuset's; NULL: anywhere
 * @tries: evacuations so far; @again: another one may find something
 * @rung: answer: which rung had the page
 * @exhaust: answer, if exhausted: what the group does then, enum sol_exhaust
 */
struct sol_request {
	u16 id;
	gfp_t gfp;
	bool table;
	bool modest;
	bool target;
	int nid;
	const nodemask_t *allowed;
	const nodemask_t *cpuset;
	u8 tries;
	bool again;
	enum sol_rung rung;
	u8 exhaust;
};

#define SOL_EVACUATIONS		8	/* tries before the task is killed ... */
#define SOL_EVACUATION_WAIT	(HZ / 10)	/* ... with pauses between them */

static inline bool sol_request_allows(const struct sol_request *rq, int nid)
{
	return (!rq->allowed || node_isset(nid, *rq->allowed)) &&
	       (!rq->cpuset || node_isset(nid, *rq->cpuset));
}

/*
 * The rungs below the first. @rq->nid is a node. NULL: exhausted, counted, and
 * the group did what it does then (growing is tried first); or it does not
 * colour, then ->exhaust is SOL_SPILL and nothing is counted. May sleep if
 * ->gfp does.
 */
struct page *sol_request_slow(struct sol_request *rq);

/* A page for @rq: all rungs. Interrupts are on. */
static __always_inline struct page *sol_request_page(struct sol_request *rq)
{
	struct page *page;

	if (rq->nid != NUMA_NO_NODE && !sol_request_allows(rq, rq->nid))
		return sol_request_slow(rq);
	page = sol_cpu_list_get(rq->id, rq->nid, rq->gfp, rq->table, true);
	rq->rung = SOL_AT_HAND;
	return likely(page) ? page : sol_request_slow(rq);
}

#endif /* SOLOIST_REQUEST_H */
