/* SPDX-License-Identifier: GPL-2.0 */
/* Refill: frames of a cell come out of the buddy allocator, one by one. */
#ifndef SOLOIST_REFILL_H
#define SOLOIST_REFILL_H

#include <linux/mmzone.h>

#include "store.h"

#define SOL_WALK_BUDGET	4096u	/* frames that one refill looks at: some 100 us */

#define SOL_REFILL_MAX	32	/* frames that are listed together */

/**
 * struct sol_refill - a walk over frames of a cell
 * @cell: whose frames
 * @node: the cell's node
 * @want: frames that are wanted
 * @got: frames taken so far
 * @budget: frames that may still be looked at
 * @hard: take frames down to the min watermark, not the low one
 * @zone: the zone that was checked last
 * @zone_ok: it has enough free memory
 * @short_of_memory: a zone had not
 * @block: pageblocks that were checked last, plus 1
 * @block_ok: they are usable
 * @visit: what to do with each frame of the cell; NULL: list it if it is free
 * @ctx: for @visit
 * @n: frames in @taken
 * @taken: frames that were taken and are not listed yet
 */
struct sol_refill {
	u32 cell;
	u32 node;
	u32 want;
	u32 got;
	u32 budget;
	bool hard;
	struct zone *zone;
	bool zone_ok;
	bool short_of_memory;
	u64 block[2];
	bool block_ok[2];
	void (*visit)(struct sol_refill *f, u64 pfn);
	void *ctx;
	u32 n;
	u32 taken[SOL_REFILL_MAX];
};

/**
 * sol_refill_walk() - walk over the frames of a cell, from the top downwards
 * @f: what is wanted
 * @walk: where the last walk stopped; becomes where this one does
 *
 * The walk stops when @f has what it wants or spent its budget. May sleep.
 *
 * Return: true: the walk has been all the way round.
 */
bool sol_refill_walk(struct sol_refill *f, struct sol_walk *walk);

/* List frame @pfn in @f's cell if it is free. */
void sol_refill_take(struct sol_refill *f, u64 pfn);

/* May frame @pfn be ours, as its block and our tables say? */
bool sol_refill_may_take(struct sol_refill *f, u64 pfn);

/* Does @zone stay above its watermark if @f takes what it wants? */
bool sol_refill_zone_ok(struct sol_refill *f, struct zone *zone);

/* ---- Refilling a cell ---- */

/**
 * sol_refill() - list free frames of a cell
 * @cell: the cell. After a whole round over its frames, none begins for a second,
 *	longer after each round that found nothing
 * @want: frames that are wanted
 * @budget: frames that may be looked at; becomes what is left
 *
 * May sleep. Return: how many frames were listed.
 */
u32 sol_refill(u32 cell, u32 want, u32 *budget);

/* End @cell's backoff: some of its frames probably came free. */
void sol_refill_retry(u32 cell);

/* Frames that the next refill of @cell should bring: few at first, then more. */
u32 sol_refill_batch(u32 cell);

/**
 * sol_refill_same_color() - a page of the same colour and owner, to migrate to
 * @page: a page that we own
 * @gfp: whether it may sleep, and whether the page must be zero
 *
 * Return: a page with one reference, or NULL: there is none now.
 */
struct page *sol_refill_same_color(struct page *page, gfp_t gfp);

/*
 * May @page's pageblock be used? Not one that is being unplugged, of CMA, or kept for
 * atomic requests.
 */
bool sol_block_usable(struct page *page);

int sol_refill_init(void);	/* 0 or -ENOENT */

#endif /* SOLOIST_REFILL_H */
