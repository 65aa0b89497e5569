/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frame store: the machine's free frames by cell.
 *
 * core/frames keeps the lists. Here are their locks, the array of all frames' tags,
 * and the way in and out of the buddy allocator. A listed frame has reference count
 * 0, like a free page, and its struct page means nothing else.
 *
 * Locking: each cell has a raw spinlock, taken with interrupts off. Who releases it says
 * how many frames came or went, and so what the shrinker may take is counted (sol_spare):
 * nobody walks over cells for that. The
 * tag of a frame in use changes by cmpxchg: of those who would take the frame back, forget it or
 * free it, one does. A held frame belongs to its holder. sol_remap() is called under
 * sol_group_mutex, when no group exists.
 */
#ifndef SOLOIST_STORE_H
#define SOLOIST_STORE_H

#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/spinlock.h>
#include <linux/static_call.h>
#include <linux/topology.h>

#include "../../core/frames/frames.h"
#include "../compat/alloc.h"

extern struct sol_frames sol_store;	/* ->map is NULL until one is set */

/* Position of a walk over the frames of a cell, from the top downwards. */
struct sol_walk {
	u32 top;	/* frames from here on were looked at; 0: not begun */
	u32 left;	/* regions until the round is over; 0: it is */
	u16 step;	/* solutions of that region already looked at */
	bool found;	/* a frame, in this round */
};

/**
 * struct sol_cell_state - what the kernel knows of a cell, beside its lists
 * @lock: of the cell's lists
 * @reserve: listed frames that the shrinker leaves; changed under @lock
 * @spare: listed frames beyond @reserve, as they are counted in sol_spare; only if
 *	@reserve is not 0
 * @nid: the cell's node
 * @take: walk for free frames; racy on purpose, as all below
 * @move: walk for frames that can be made free
 * @batch: frames that the next refill brings
 * @failures: @take's rounds in a row that found nothing
 * @move_failures: @move's rounds in a row that found nothing
 * @refill_after: jiffies: no round of @take begins before that
 * @move_after: jiffies: no round of @move begins before that
 *
 * On cache lines of its own, so that groups, whose cells differ, do not disturb
 * each other.
 */
struct sol_cell_state {
	raw_spinlock_t lock;
	u32 reserve;
	u32 spare;
	struct sol_walk take;
	struct sol_walk move;
	u8 batch;
	u8 failures;
	u8 move_failures;
	u8 nid;
	unsigned long refill_after;
	unsigned long move_after;
} ____cacheline_aligned_in_smp;

extern struct sol_cell_state *sol_cell_states;	/* by cell */

/*
 * Frames that the shrinker may take, by node. What one CPU lists another may hand out,
 * so that only the sum over CPUs has a meaning.
 */
struct sol_spare {
	long frames[SOL_MAX_NODES];
};

DECLARE_PER_CPU(struct sol_spare, sol_spare);

/*
 * Is @page on the map's node @node? numa=fake makes several nodes of one, which are no
 * distance apart: banks know nothing of them, so a map has the one.
 */
static inline bool sol_is_on_node(const struct page *page, int node)
{
	int nid = page_to_nid(page);

	return nid == node || node_distance(nid, node) == LOCAL_DISTANCE;
}

static inline u32 sol_cell_listed(u32 cell)
{
	const struct sol_cell *c = &sol_store.cell[cell];

	return READ_ONCE(c->listed[0]) + READ_ONCE(c->listed[1]);
}

/* Frames that the shrinker may take from @cell. */
static inline u32 sol_cell_spare(u32 cell)
{
	u32 listed = sol_cell_listed(cell);

	return listed - min(listed, READ_ONCE(sol_cell_states[cell].reserve));
}

/* For both, interrupts are off. */
static inline void sol_cell_lock(u32 cell)
	__acquires(&sol_cell_states[cell].lock)
{
	raw_spin_lock(&sol_cell_states[cell].lock);
}

/* Count what the shrinker may take from @cell, which has a reserve; under its lock. */
static inline void sol_cell_recount(u32 cell)
{
	struct sol_cell_state *state = &sol_cell_states[cell];
	u32 spare = sol_cell_spare(cell);

	this_cpu_add(sol_spare.frames[state->nid],
		     (long)spare - (long)state->spare);
	state->spare = spare;
}

/* @more: frames that the lists have more than when they were locked; below 0: fewer. */
static inline void sol_cell_unlock(u32 cell, long more)
	__releases(&sol_cell_states[cell].lock)
{
	struct sol_cell_state *state = &sol_cell_states[cell];

	if (likely(!state->reserve))
		this_cpu_add(sol_spare.frames[state->nid], more);
	else
		sol_cell_recount(cell);
	raw_spin_unlock(&state->lock);
}

/* Lock the lists of @cell, and turn interrupts off until they are unlocked. */
#define sol_cell_lock_irqsave(cell, flags)				\
do {									\
	local_irq_save(flags);						\
	sol_cell_lock(cell);						\
} while (0)

#define sol_cell_unlock_irqrestore(cell, more, flags)			\
do {									\
	sol_cell_unlock(cell, more);					\
	local_irq_restore(flags);					\
} while (0)

/* A walk lately found no free frame of @cell and could free none: do not walk now. */
static inline bool sol_cell_backs_off(u32 cell)
{
	return time_before(jiffies, READ_ONCE(sol_cell_states[cell].move_after));
}

/* ---- Handing out ---- */

DECLARE_STATIC_KEY_FALSE(sol_debug_pages);

/* What a page is for. What does not move must not be in memory that must be movable. */
enum sol_page_use {
	SOL_USE_MOVABLE,
	SOL_USE_FIXED,
	SOL_USE_TABLE,	/* fixed, too: a page table, which the group counts */
};

/*
 * Make a frame that has just left the lists a page, zeroed if @gfp says so, with one
 * reference; a page table has as many as get_page_from_freelist() gives it.
 * Whether init_on_alloc requires that it is zeroed is the caller's decision, who knows
 * whether the page will be written as a whole. ->private is 0 already: the kernel's
 * free and a refill set it.
 */
static __always_inline struct page *sol_page_out(u64 pfn, gfp_t gfp,
						 bool is_zero,
						 enum sol_page_use use)
{
	struct page *page = pfn_to_page(pfn);

	if (static_branch_unlikely(&sol_debug_pages))
		sol_page_prepare(page, gfp);
	else if (!is_zero && gfp & __GFP_ZERO)
		clear_highpage(page);
	if (use != SOL_USE_TABLE || !SOL_FREELIST_PAGES_ARE_FROZEN)
		init_page_count(page);
	clear_page_pfmemalloc(page);
	return page;
}

/*
 * May this frame, held by the caller, be handed out? One that failed while it was free
 * is not used again (keep/reclaim.c takes it away).
 */
static inline bool sol_frame_fit(u64 pfn, enum sol_page_use use)
{
	struct page *page = pfn_to_page(pfn);

	return !PageHWPoison(page) &&
	       (use == SOL_USE_MOVABLE || page_zonenum(page) != ZONE_MOVABLE);
}

/**
 * struct sol_taken - a frame that has left the lists and is no page yet
 * @pfn: its number
 * @is_zero: it is known to be zero
 */
struct sol_taken {
	u64 pfn;
	bool is_zero;
};

/**
 * sol_store_take() - a frame from the list of a cell
 * @cell: one of the group's
 * @id: of the group, where the page is counted
 * @gfp: of the request; __GFP_ZERO: the page must be zero
 * @use: what the page is for
 * @taken: becomes the frame
 *
 * Call it in the preempt-off section in which the group's cells were read, and
 * sol_page_out() after that section: the kernel's debugging of pages allocates memory.
 *
 * Return: false: no frame is listed, or it does not fit.
 */
bool sol_store_take(u32 cell, u16 id, gfp_t gfp, enum sol_page_use use,
		    struct sol_taken *taken);

/* ---- Taking back ---- */

/* Is @page ours and in use? Also if it was freed without coming to us. */
static inline bool sol_store_owns(const struct page *page)
{
	u64 pfn = page_to_pfn(page);

	return pfn < sol_store.n_frames &&
	       READ_ONCE(sol_frames_at(&sol_store, pfn)->tag) & SOL_TAG_USED;
}

/**
 * sol_store_hold() - hold a frame in use that was freed
 * @pfn: its number; preemption is off
 *
 * Return: its cell: the caller holds the frame, and must list or drop it;
 * SOL_NO_CELL: it was not in use.
 */
u32 sol_store_hold(u64 pfn);

/* @page leaves its colour (it migrated or failed): it is not ours any more. */
void sol_store_forget(struct page *page);

/**
 * sol_store_adopt() - a frame that others use comes to us when it is freed
 * @cell: its cell
 * @pfn: its number; the caller has a reference of the page, which is small and will
 *	migrate or go out of the page cache
 *
 * Return: false: that can't be. sol_store_disown() must follow.
 */
bool sol_store_adopt(u32 cell, u64 pfn);

/*
 * The adopted frame @pfn remains with those who use it, if they still do. Return: true:
 * they don't, and the frame came to us.
 */
bool sol_store_disown(u64 pfn);

/* A held frame returns to its list, or becomes the system's. */
void sol_store_list(u32 pfn, bool zero);
void sol_store_drop(u32 pfn);

/* ---- To and from the buddy allocator ---- */

/* List @n frames of @cell that were just taken out of the buddy allocator. */
void sol_store_add(u32 cell, const u32 *pfn, u32 n);

/* The shrinker leaves @more frames of @cell than until now; below 0: fewer. */
void sol_store_keep(u32 cell, s32 more);

/* Give a frame that left its list back to the buddy allocator. */
void sol_store_give(u64 pfn);

extern atomic64_t sol_taken, sol_given, sol_lost;

/* ---- Load and unload ---- */

int sol_store_init(void);	/* 0, -E2BIG, -ENOENT, -ENOMEM */
void sol_store_exit(void);

#endif /* SOLOIST_STORE_H */
