/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frame store: the machine's free frames by cell, and where they come from.
 *
 * core/frames keeps the lists; here are their locks, the array of all frames'
 * tags, and the way in and out of the buddy allocator. A listed frame has
 * reference count 0, like a free page, and no struct page field means anything.
 *
 * Locking: one raw spinlock for each of SOL_LOCKS classes of cells, interrupts
 * off. sol_store_set_map() is under sol_group_mutex, with no group alive.
 */
#ifndef SOLOIST_STORE_H
#define SOLOIST_STORE_H

#include <linux/highmem.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/spinlock.h>
#include <linux/static_call.h>

#include "../core/frames.h"

struct sol_group;

extern struct sol_frames sol_store;	/* ->map is NULL until one is set */

/* ---- For the control interface; all may sleep ---- */

/**
 * sol_store_set_map() - colour by this map from now on
 * @map: stays in use until the next call; NULL: none
 * @err: why it was refused
 *
 * All listed frames go back; frames in use by the old map's colours become the
 * system's own. Return: 0, -EINVAL (the map contradicts the kernel's nodes),
 * -ENOMEM.
 */
int sol_store_set_map(const struct sol_map *map, struct sol_err *err);

/**
 * sol_store_reserve() - list known-zero frames in a group's colours
 * @group: referenced by the caller
 * @frames: how many shall be there, 4 KiB each
 *
 * Return: how many are there now; fewer when there is no more memory.
 */
u64 sol_store_reserve(struct sol_group *group, u64 frames);

/* Frames listed in the cells of @group, and how many it could have at most. */
u64 sol_store_listed(struct sol_group *group);

/* All free memory into the lists, but for the watermarks. Frames listed. */
u64 sol_store_fill_all(void);

/* All listed frames back to the buddy allocator. Frames given. */
u64 sol_store_drain_all(void);

/**
 * struct sol_store_stats - counts of 4 KiB frames
 * @listed: in lists now
 * @zero: of these, known to be zero
 * @used: handed out and not yet freed
 * @taken: ever taken from the buddy allocator
 * @given: ever given back to it
 * @lost: that were in use and are no longer ours: of blocks being unplugged,
 *	broken ones, those of an earlier map
 */
struct sol_store_stats {
	u64 listed;
	u64 zero;
	u64 used;
	u64 taken;
	u64 given;
	u64 lost;
};

void sol_store_stats(struct sol_store_stats *stats);

/* Frames in use in @bank_set: the palette's `busy`. */
u64 sol_store_busy(const void *unused, u32 bank_set);

/* ---- For reclaim and hotplug ---- */

/* Listed frames on node @nid (NUMA_NO_NODE: everywhere). Cheap, any context. */
unsigned long sol_store_count(int nid);

/* Give back up to @n listed frames of @nid; unknown content first. Any context
 * that may free pages. Frames given.
 */
unsigned long sol_store_shrink(int nid, unsigned long n);

/* No frame in [start, end) stays in a list. May sleep. */
void sol_store_evict(u64 start, u64 end);

/* ---- For what moves pages ---- */

/* @page was handed out by us and is in use (or was, and went past us). */
static inline bool sol_store_owns(const struct page *page)
{
	u64 pfn = page_to_pfn(page);

	return pfn < sol_store.n_frames &&
	       READ_ONCE(sol_store.frame[pfn].tag) & SOL_TAG_USED;
}

/**
 * sol_store_twin() - a page of the same colour and owner, to migrate to
 * @page: a page that we own
 * @gfp: whether it may sleep, and whether it must be zero
 *
 * Return: a page with one reference, or NULL: there is none now.
 */
struct page *sol_store_twin(struct page *page, gfp_t gfp);

/* @page leaves its colour (migrated, broken): no longer ours, nor its group's. */
void sol_store_forget(struct page *page);

/* ---- For fault.c ---- */

/* Where a page may be. */
struct sol_place {
	int nid;			/* first choice */
	const nodemask_t *allowed;	/* NULL: anywhere */
	const nodemask_t *cpuset;	/* NULL: anywhere */
	bool table;			/* a page table: nothing that must move */
	bool hurry;			/* another page will do: search seldom */
};

static inline bool sol_place_allows(const struct sol_place *place, int nid)
{
	return (!place->allowed || node_isset(nid, *place->allowed)) &&
	       (!place->cpuset || node_isset(nid, *place->cpuset));
}

/* ---- Handing out ---- */

typedef void sol_post_alloc_fn(struct page *page, unsigned int order,
			       gfp_t gfp);
DECLARE_STATIC_CALL(sol_post_alloc, sol_post_alloc_fn);
DECLARE_STATIC_KEY_FALSE(sol_debug_pages);

/*
 * Make a frame that just left the lists a page with one reference. Its
 * ->private is 0: the kernel's free sees to that, and so does a refill.
 */
static __always_inline struct page *sol_page_out(u64 pfn, gfp_t gfp,
						 bool is_zero)
{
	struct page *page = pfn_to_page(pfn);

	if (static_branch_unlikely(&sol_debug_pages))
		static_call(sol_post_alloc)(page, 0, gfp);
	else if (!is_zero && want_init_on_alloc(gfp))
		clear_highpage(page);
	init_page_count(page);
	clear_page_pfmemalloc(page);
	return page;
}

/* A page of @id's colours from the lists, or NULL. Never sleeps. */
struct page *sol_store_get(u16 id, const struct sol_place *place, gfp_t gfp);

/* As above, and fills the lists. NULL: exhausted. May sleep if @gfp does. */
struct page *sol_store_get_filling(u16 id, const struct sol_place *place,
				   gfp_t gfp);

/*
 * A page that we own was freed, after the kernel's checks; it is ours again.
 * False: it is not fit for that (forgotten), the buddy allocator shall have it.
 */
bool sol_store_put(struct page *page);

/* ---- Between the files of the store ---- */

/* Cells that a hand-out looks at before it fills lists. */
#define SOL_LOOKS	16

#define SOL_LOCKS	256

struct sol_lock {
	raw_spinlock_t lock;
} ____cacheline_aligned_in_smp;

extern struct sol_lock sol_locks[SOL_LOCKS];

static inline raw_spinlock_t *sol_cell_lock(u32 cell)
{
	return &sol_locks[cell % SOL_LOCKS].lock;
}

static inline u32 sol_cell_listed(u32 cell)
{
	const struct sol_cell *c = &sol_store.cell[cell];

	return READ_ONCE(c->listed[0]) + READ_ONCE(c->listed[1]);
}

int sol_refill_init(void);
int sol_refill_set_map(const struct sol_map *map, struct sol_err *err);
void sol_refill_exit(void);

/* Put up to @want frames on @cell's list, after a bounded search; how many. */
u32 sol_refill(u32 cell, u32 want);

/*
 * Frames for any of these cells, ascending, of @node, from wherever they are
 * free. @last: down to the min watermark. Does not sleep but for locks; how
 * many were listed.
 */
u32 sol_refill_any(const u32 *cell, u32 n, u32 node, bool last);

/* Have the kernel free a block on @node: it reclaims and compacts. */
bool sol_make_room(u32 node, u32 order, gfp_t gfp);

/* A full search for @cell's like was in vain, half a second ago at most. */
bool sol_refill_is_dry(u32 cell);
void sol_refill_set_dry(u32 cell);

/* Frames that one refill of @cell should bring: few at first, then more. */
u32 sol_refill_batch(u32 cell);

/* Not isolated (being unplugged), not CMA, not kept for atomic requests. */
bool sol_block_usable(struct page *page);

void sol_store_add(u32 cell, u64 pfn);
void sol_store_give(u64 pfn);

#endif /* SOLOIST_STORE_H */
