/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frame store: the machine's free frames by cell.
 *
 * core/frames keeps the lists; here are their locks, the array of all frames'
 * tags, and the way in and out of the buddy allocator. A listed frame has
 * reference count 0, like a free page, and no struct page field means anything.
 *
 * Locking: a raw spinlock for each cell, interrupts off. The tag of a frame in
 * use is changed by cmpxchg, so that of those who would take it back, forget or
 * free it, one does; a frame held is whoever's holds it. sol_remap() is
 * under sol_group_mutex, with no group alive.
 */
#ifndef SOLOIST_STORE_H
#define SOLOIST_STORE_H

#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/spinlock.h>
#include <linux/static_call.h>

#include "../../core/frames/frames.h"
#include "../compat/alloc.h"

extern struct sol_frames sol_store;	/* ->map is NULL until one is set */

/* Where a walk over the frames of a cell has got to, from the top downwards. */
struct sol_walk {
	u32 region;	/* just above the region; 0: not begun */
	u32 left;	/* regions until it has been round; 0: at a beginning */
	u16 step;	/* solutions of that region already looked at */
	bool found;	/* anything, this time round */
};

/**
 * struct sol_cell_state - what the kernel knows of a cell, beside its lists
 * @lock: of the cell's lists
 * @reserve: listed frames that the shrinker leaves
 * @take: walk for free frames; racy on purpose, as all below
 * @move: walk for frames that can be made free
 * @batch: frames that the next refill brings
 * @failures: walks in a row, all the way round, that found nothing
 * @refill_after: jiffies: no walk before that
 *
 * On cache lines of its own, so that groups, whose cells differ, do not disturb
 * each other.
 */
struct sol_cell_state {
	raw_spinlock_t lock;
	u32 reserve;
	struct sol_walk take;
	struct sol_walk move;
	u8 batch;
	u8 failures;
	unsigned long refill_after;
} ____cacheline_aligned_in_smp;

extern struct sol_cell_state *sol_cell_states;	/* by cell */

static inline raw_spinlock_t *sol_cell_lock(u32 cell)
{
	return &sol_cell_states[cell].lock;
}

static inline u32 sol_cell_listed(u32 cell)
{
	const struct sol_cell *c = &sol_store.cell[cell];

	return READ_ONCE(c->listed[0]) + READ_ONCE(c->listed[1]);
}

/* @cell's frames were all looked at lately. */
static inline bool sol_cell_backs_off(u32 cell)
{
	return time_before(jiffies, READ_ONCE(sol_cell_states[cell].refill_after));
}

/* ---- Handing out ---- */

DECLARE_STATIC_KEY_FALSE(sol_debug_pages);

/*
 * Make a frame that just left the lists a page with one reference, and zero if
 * @gfp says so: init_on_alloc is the caller's, who knows whether the page will
 * be written whole. Its ->private is 0: the kernel's free sees to that, and so
 * does a refill.
 */
static __always_inline struct page *sol_page_out(u64 pfn, gfp_t gfp,
						 bool is_zero)
{
	struct page *page = pfn_to_page(pfn);

	if (static_branch_unlikely(&sol_debug_pages))
		sol_page_prepare(page, gfp);
	else if (!is_zero && gfp & __GFP_ZERO)
		clear_highpage(page);
	init_page_count(page);
	clear_page_pfmemalloc(page);
	return page;
}

/*
 * May this frame, held by the caller, be handed out? A page table does not
 * move, so it keeps out of memory that must; a frame that failed while it was
 * free is nobody's (keep/reclaim.c takes it away).
 */
static inline bool sol_frame_fit(u64 pfn, bool table)
{
	struct page *page = pfn_to_page(pfn);

	return !PageHWPoison(page) &&
	       !(table && page_zonenum(page) == ZONE_MOVABLE);
}

/*
 * A frame of @cell for group @id, counted there, for a request of @gfp, as a page;
 * NULL: none listed. Within the preempt-off section in which the group's cells
 * were read.
 */
struct page *sol_store_take(u32 cell, u16 id, gfp_t gfp, bool table);

/* ---- Taking back ---- */

/* @page was handed out by us and is in use (or was, and went past us). */
static inline bool sol_store_owns(const struct page *page)
{
	u64 pfn = page_to_pfn(page);

	return pfn < sol_store.n_frames &&
	       READ_ONCE(sol_frames_at(&sol_store, pfn)->tag) & SOL_TAG_USED;
}

/*
 * A frame in use was freed: the caller holds it now, and must list it or have
 * it forgotten. SOL_NO_CELL: it is not in use. Preemption is off.
 */
u32 sol_store_hold(u64 pfn);

/* @page leaves its colour (migrated, broken): no longer ours, nor its group's. */
void sol_store_forget(struct page *page);

/* A held frame goes back on its list, or to nobody. */
void sol_store_list(u32 pfn, bool zero);
void sol_store_drop(u32 pfn);

/* ---- To and from the buddy allocator ---- */

/* List @n frames of @cell, nobody's, just taken out of the buddy allocator. */
void sol_store_add(u32 cell, const u32 *pfn, u32 n);

/* A frame that left its list goes back. */
void sol_store_give(u64 pfn);

extern atomic64_t sol_taken, sol_given, sol_lost;

/* ---- Load and unload ---- */

int sol_store_init(void);	/* 0, -E2BIG, -ENOENT, -ENOMEM */
void sol_store_exit(void);

#endif /* SOLOIST_STORE_H */
