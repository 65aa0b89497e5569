/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests for a page in colour: one function answers faults, page tables and
 * migrations. request.c says where pages come from.
 */
#ifndef SOLOIST_REQUEST_H
#define SOLOIST_REQUEST_H

#include <linux/gfp_types.h>
#include <linux/nodemask.h>

#include "../frames/cpu_list.h"
#include "../trace/rung.h"

/**
 * struct sol_request - a request for one page
 * @id: the group whose colours the page shall have
 * @gfp: whether the request may sleep and reclaim, and whether the page is zero
 * @use: what the page is for
 * @modest: a page out of colour will do, so that one wait for supply is enough
 * @target: the page is the target of a migration, which counts a failure itself
 * @nid: the preferred node; NUMA_NO_NODE: the one near the CPU
 * @allowed: nodes that the memory policy allows; NULL: all
 * @cpuset: nodes that the cpuset allows; NULL: all
 * @told: answer: supply answered all waits of the last try
 * @rung: answer: the rung that had the page
 * @exhaust: answer, if there is none: what the group does then, enum sol_exhaust
 */
struct sol_request {
	u16 id;
	gfp_t gfp;
	enum sol_page_use use;
	bool modest;
	bool target;
	int nid;
	const nodemask_t *allowed;
	const nodemask_t *cpuset;
	bool told;
	enum sol_rung rung;
	u8 exhaust;
};

/* Do memory policy and cpuset of @rq allow node @nid? */
static inline bool sol_request_allows(const struct sol_request *rq, int nid)
{
	return (!rq->allowed || node_isset(nid, *rq->allowed)) &&
	       (!rq->cpuset || node_isset(nid, *rq->cpuset));
}

/**
 * sol_request_nearest() - the allowed node that is nearest to ->nid
 * @rq: the request; ->nid is a node
 *
 * Return: a node, or NUMA_NO_NODE: none is allowed.
 */
int sol_request_nearest(const struct sol_request *rq);

/**
 * sol_request_slow() - a page from anywhere but the per-CPU list of the node
 * @rq: the request; ->nid is a node, or NUMA_NO_NODE
 *
 * Sleeps if ->gfp allows it. Return: a page with one reference, or NULL. Then the
 * group is exhausted: that is counted, and ->exhaust is the group's policy after
 * growing failed; or the group does not colour: ->exhaust is SOL_SPILL, and nothing
 * is counted. Nor is anything if a signal ends the current task.
 */
struct page *sol_request_slow(struct sol_request *rq);

/**
 * sol_request_page() - a page from anywhere
 * @rq: the request
 *
 * Interrupts are on. Return: as sol_request_slow().
 */
static __always_inline struct page *sol_request_page(struct sol_request *rq)
{
	struct page *page;
	int nid = rq->nid;

	if (nid != NUMA_NO_NODE && !sol_request_allows(rq, nid)) {
		nid = sol_request_nearest(rq);
		if (nid == NUMA_NO_NODE)
			return sol_request_slow(rq);
		rq->nid = nid;
	}
	page = sol_cpu_list_get(rq->id, nid, rq->gfp, rq->use, true);
	rq->rung = SOL_AT_HAND;
	return likely(page) ? page : sol_request_slow(rq);
}

#endif /* SOLOIST_REQUEST_H */
