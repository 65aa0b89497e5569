/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sources of a request, for request.c: each looks for a page on one node. The trace
 * calls them rungs.
 */
#ifndef SOLOIST_RUNGS_H
#define SOLOIST_RUNGS_H

#include "request.h"

/* Does group @id back off on node @nid, or has it no cell there? */
bool sol_request_backs_off(u16 id, int nid);

/* A page from any list of the group: through the per-CPU list, or one by one. */
struct page *sol_from_lists(const struct sol_request *rq, int nid);

/*
 * The sources. They sleep if @rq->gfp allows it, and are called in a section of the
 * lists. Return: a page with one reference, or NULL.
 */
struct page *sol_from_listed(struct sol_request *rq, int nid);
struct page *sol_from_refill(struct sol_request *rq, int nid);
struct page *sol_from_search(struct sol_request *rq, int nid);
struct page *sol_from_evacuation(struct sol_request *rq, int nid);

#endif /* SOLOIST_RUNGS_H */
