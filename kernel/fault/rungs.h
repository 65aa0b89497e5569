/* SPDX-License-Identifier: GPL-2.0 */
/* The rungs of the ladder, for request.c: each looks for a page on one node. */
#ifndef SOLOIST_RUNGS_H
#define SOLOIST_RUNGS_H

#include "request.h"

/* Does group @id back off on @nid, or has no cell there? */
bool sol_request_backs_off(u16 id, int nid);

/* Any list of the group's: a per-CPU list of them, or else one by one. */
struct page *sol_from_lists(const struct sol_request *rq, int nid);

/*
 * The rungs. All may sleep if @rq->gfp does, and are called in a section of the
 * lists. Return: a page with one reference, or NULL.
 */
struct page *sol_from_turn(struct sol_request *rq, int nid);
struct page *sol_from_refill(struct sol_request *rq, int nid);
struct page *sol_from_search(struct sol_request *rq, int nid);
struct page *sol_from_evacuation(struct sol_request *rq, int nid);

#endif /* SOLOIST_RUNGS_H */
