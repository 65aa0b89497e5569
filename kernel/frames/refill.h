/* SPDX-License-Identifier: GPL-2.0 */
/* Refill: frames of a cell out of the buddy allocator, one by one. */
#ifndef SOLOIST_REFILL_H
#define SOLOIST_REFILL_H

#include <linux/mmzone.h>

#include "store.h"

/* Frames that one request looks at, over all its cells: some 100 us. */
#define SOL_WALK_BUDGET	4096u

#define SOL_REFILL_MAX	32	/* frames that are listed together */

/* ---- What a refill is asked for ---- */

struct sol_refill {
	u32 cell;
	u32 node;
	u32 want;
	u32 got;
	u32 budget;		/* frames that may be looked at still */
	bool hard;		/* down to the min watermark */
	struct zone *zone;	/* the last one that was asked, and ... */
	bool zone_ok;		/* ... whether it has enough */
	u64 block[2];		/* pageblocks that were asked, and ... */
	bool block_ok[2];	/* ... whether they are usable */
	/* What to do with each frame of the cell; NULL: list it, if it is free. */
	void (*visit)(struct sol_refill *f, u64 pfn);
	void *ctx;
	u32 n;			/* frames taken, which ... */
	u32 taken[SOL_REFILL_MAX];	/* ... are not listed yet */
};

/*
 * Walk the frames of @f's cell downwards from where @walk was, until @f has what
 * it wants, or spent its budget, or the walk has been round: true then.
 */
bool sol_refill_walk(struct sol_refill *f, struct sol_walk *walk);

/* List @pfn, if it is free, in @f's cell: a visitor, and for others. */
void sol_refill_take(struct sol_refill *f, u64 pfn);

/* Does the zone stay above its watermark if @f takes what it wants? */
bool sol_refill_zone_ok(struct sol_refill *f, struct zone *zone);

/* ---- Refilling a cell ---- */

/*
 * Put up to @want frames on @cell's list. Looks at no more than *@budget
 * frames, and counts them off. A cell whose frames were all looked at backs_off: a
 * second, and longer each time that none was free. How many were listed.
 */
u32 sol_refill(u32 cell, u32 want, u32 *budget);

/* Look again at once: there is reason to think that some are free. */
void sol_refill_retry(u32 cell);

/* Frames that one refill of @cell should bring: few at first, then more. */
u32 sol_refill_batch(u32 cell);

/**
 * sol_refill_same_color() - a page of the same colour and owner, to migrate to
 * @page: a page that we own
 * @gfp: whether it may sleep, and whether it must be zero
 *
 * Return: a page with one reference, or NULL: there is none now.
 */
struct page *sol_refill_same_color(struct page *page, gfp_t gfp);

/* Not isolated (being unplugged), not CMA, not kept for atomic requests. */
bool sol_block_usable(struct page *page);

int sol_refill_init(void);	/* 0 or -ENOENT */

#endif /* SOLOIST_REFILL_H */
