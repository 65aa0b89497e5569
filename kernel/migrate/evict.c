// SPDX-License-Identifier: GPL-2.0
/*
 * Evict: what others have in a group's colours goes elsewhere.
 *
 * A sweep visits all frames of the colours. Free ones are listed. Clean page cache that
 * nobody maps is dropped, other page cache and memory of tasks in no group migrates.
 * Targets lie outside of the group's colours and of every exclusive group's. A free page
 * of the kernel's in the group's colours is listed; one of an exclusive group's is put
 * aside until the pass is over. (If it went back at once, the kernel would offer it
 * again.) Others get it back while a rate has us wait. A huge page is split first, for it
 * lies in many colours.
 *
 * Two further passes try again what was in use for a moment, and frames that others got
 * before they were listed. Pages that can't move stay, and the report counts them by
 * cause.
 *
 * A group's own task has pages that no group handed out, if it joined with memory. They
 * count as others': recolour the task first (recolor.c).
 *
 * Locking: none while pages move. sol_group_mutex while colours are noted. A section of
 * the lists while frames are looked at, and a reference on each page that is.
 */
#include <linux/bitmap.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "../command/status.h"
#include "../frames/cpu_list.h"
#include "../frames/evacuate.h"
#include "../frames/huge.h"
#include "../frames/refill.h"
#include "../group/group.h"
#include "../hook/hook.h"
#include "../occupancy/occupancy.h"
#include "../occupancy/sweep.h"
#include "evict.h"

#define SPARES_MIN	4096	/* pages of unwanted colours that may be put aside */
#define SPARE_US	1	/* microseconds in which one is put aside once more, at most */

static SOL_JOB(evict_job, "evict");

static const int *locked_may_move;	/* vm.compact_unevictable_allowed */

/**
 * struct eviction - an eviction that runs
 * @sweep: over the group's colours
 * @avoid: bitmap by cell: where no target may lie
 * @batch: pages that will migrate
 * @freed: frames of pages that were dropped
 * @n_freed: how many
 * @spare: pages that were put aside
 * @n_spare: how many
 * @spares_max: at most so many
 * @spares_nid: the node that they are of
 * @unwritten: what kept the frame just visited from going
 * @missed: frames of the pass that moved or were dropped, and that others have again
 * @id: of the group
 */
struct eviction {
	struct sol_sweep sweep;
	unsigned long *avoid;
	struct sol_move_batch batch;
	u32 freed[SOL_BATCH_PAGES];
	u32 n_freed;
	struct list_head spare;
	u64 n_spare;
	u64 spares_max;
	int spares_nid;
	struct sol_unwritten unwritten;
	u64 missed;
	u16 id;
};

/* ---- Targets ---- */

/* Colours of the group and of exclusive groups, into @avoid. */
static void note_avoided(unsigned long *avoid, const unsigned long *own)
{
	const struct sol_cells *cells;
	const struct sol_group *g;
	u32 id, i;

	bitmap_copy(avoid, own, sol_store.map->n_cells);
	mutex_lock(&sol_group_mutex);
	for (id = 1; id <= SOL_MAX_GROUPS; id++) {
		g = rcu_dereference_protected(sol_groups[id],
					      lockdep_is_held(&sol_group_mutex));
		if (!g || !g->colors.exclusive)
			continue;
		cells = rcu_dereference_protected(g->cells,
						  lockdep_is_held(&sol_group_mutex));
		for (i = 0; cells && i < cells->n; i++)
			__set_bit(cells->cell[i], avoid);
	}
	mutex_unlock(&sol_group_mutex);
}

static bool avoided(const struct eviction *e, u64 pfn)
{
	u32 cell = sol_map_cell(sol_store.map, pfn);

	return cell != SOL_NO_CELL && test_bit(cell, e->avoid);
}

/* Has node @nid a frame where a page may go? If not, the kernel offers none. */
static bool has_room(const struct eviction *e, int nid)
{
	const struct sol_map *map = sol_store.map;
	u32 first, n = sol_map_node_cells(map, nid, &first), i;

	for (i = first; i < first + n; i++)
		if (!test_bit(i, e->avoid) &&
		    sol_map_cell_exists(map, i / map->n_llc, i % map->n_llc))
			return true;
	return !n;	/* memory that no map knows is in nobody's colours */
}

static void free_spares(struct eviction *e)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, &e->spare, lru) {
		list_del(&page->lru);
		__free_page(page);
	}
	e->n_spare = 0;
	e->spares_nid = NUMA_NO_NODE;
}

/* Before a wait that is longer than finding the spares again. */
static void lend_spares(struct eviction *e)
{
	if (sol_job_due_us(&evict_job) > e->n_spare * SPARE_US)
		free_spares(e);
}

/*
 * A quarter of what is free on node @nid, since others need memory, too; none where no page
 * may go.
 */
static void spares_of(struct eviction *e, int nid)
{
	struct zone *zones = NODE_DATA(nid)->node_zones;
	u64 n_free = 0;
	u32 i;

	if (e->spares_nid == nid)
		return;
	free_spares(e);
	for (i = 0; i < MAX_NR_ZONES; i++)
		n_free += zone_page_state(&zones[i], NR_FREE_PAGES);
	e->spares_max = has_room(e, nid) ? max_t(u64, SPARES_MIN, n_free / 4) : 0;
	e->spares_nid = nid;
}

/* To list the one frame of @page. */
static struct sol_refill refill_of(const struct page *page)
{
	return (struct sol_refill){
		.cell = sol_map_cell(sol_store.map, page_to_pfn(page)),
		.node = page_to_nid(page),
		.want = 1,
	};
}

/* List @page, which the kernel offered, if it is of the group's colours. Return: it is gone. */
static bool list_offered(struct eviction *e, struct page *page)
{
	struct sol_refill f = refill_of(page);
	u64 pfn = page_to_pfn(page);
	int users;
	bool ours;

	if (!sol_sweep_has(&e->sweep, pfn))
		return false;
	users = sol_lists_begin();
	ours = sol_refill_zone_ok(&f, page_zone(page)) && sol_refill_may_take(&f, pfn) &&
	       sol_store_adopt(f.cell, pfn);
	if (ours) {
		__free_page(page);
		sol_cpu_list_settle();
		e->batch.report->listed += sol_store_disown(pfn);
	}
	sol_lists_end(users);
	return ours;
}

/*
 * As page cache is allocated: it may reclaim, but not kill. Of the same node, for its task
 * may be bound to that.
 */
static struct page *evict_target(struct page *src, void *ctx)
{
	struct eviction *e = ctx;
	struct page *page;
	u64 offered = 0;

	spares_of(e, page_to_nid(src));
	/* Listed ones are no spares: without a count of all there would be no end. */
	while (offered++ < e->spares_max && e->n_spare < e->spares_max &&
	       !sol_job_over(&evict_job)) {
		page = alloc_pages_node(e->spares_nid,
					GFP_HIGHUSER_MOVABLE | __GFP_THISNODE |
					__GFP_NORETRY | __GFP_NOWARN, 0);
		if (!page)
			break;
		if (!avoided(e, page_to_pfn(page)))
			return page;
		cond_resched();
		if (list_offered(e, page))
			continue;
		list_add(&page->lru, &e->spare);
		e->n_spare++;
	}
	e->batch.report->stays[SOL_STAYS_NO_ROOM]++;
	return NULL;
}

/* ---- Frames that are free ---- */

/*
 * List frame @pfn if it is free and the zone has enough. In a section of the lists.
 * Return: it may come later.
 */
static bool list_frame(struct eviction *e, u64 pfn)
{
	struct page *page = pfn_to_online_page(pfn);
	struct sol_refill f;

	if (!page)
		return false;
	f = refill_of(page);
	if (!sol_refill_zone_ok(&f, page_zone(page)))
		return false;
	sol_refill_take(&f, pfn);
	e->batch.report->listed += f.got;
	return !f.got;
}

/* The batch moves, and frames that it and dropping freed are listed. */
static void flush(struct eviction *e)
{
	u64 was[SOL_BATCH_PAGES];
	u32 n = e->batch.n, i;
	int users;

	if (!n && !e->n_freed)
		return;
	memcpy(was, e->batch.pfn, n * sizeof(*was));
	sol_batch_move(&e->batch);
	sol_evacuate_drain_local();
	users = sol_lists_begin();
	for (i = 0; i < n; i++)
		e->missed += list_frame(e, was[i]);
	for (i = 0; i < e->n_freed; i++)
		e->missed += list_frame(e, e->freed[i]);
	sol_lists_end(users);
	e->n_freed = 0;
}

/* ---- One page ---- */

/* Drop @folio, which is referenced, if it is clean page cache that nobody uses. */
static bool drop(struct folio *folio)
{
	bool dropped;

	if (folio_test_large(folio) || folio_test_anon(folio) ||
	    folio_test_swapbacked(folio) || folio_mapped(folio) ||
	    folio_test_dirty(folio) || !folio_trylock(folio))
		return false;
	dropped = !folio_test_anon(folio) && !folio_mapped(folio) &&
		  sol_drop_folio(folio);
	folio_unlock(folio);
	return dropped;
}

static bool leave_locked(void)
{
	return !locked_may_move || !READ_ONCE(*locked_may_move);
}

/* A page of a task or of the page cache, referenced. Return: the cause if it stays. */
static enum sol_stay evict_page(struct eviction *e, struct page *page)
{
	struct sol_move_report *r = e->batch.report;
	enum sol_stay stays;
	u16 group;
	int huge;

	huge = sol_huge_in_color(page_folio(page), &group);
	if (huge)
		return huge < 0 ? SOL_STAYS_BUSY : SOL_STAYS_GROUPS;
	if (PageCompound(page) && !sol_page_split(page, &e->unwritten))
		return SOL_STAYS_HUGE;
	if (drop(page_folio(page))) {
		e->freed[e->n_freed++] = page_to_pfn(page);
		r->dropped++;
		return SOL_N_STAYS;
	}
	stays = evict_job.spare ? sol_page_spare(page) : SOL_N_STAYS;
	if (stays != SOL_N_STAYS)
		return stays;
	return sol_batch_add(&e->batch, page) ? SOL_N_STAYS : SOL_STAYS_BUSY;
}

static enum sol_stay evict_frame(struct eviction *e, u64 pfn)
{
	struct page *page = pfn_to_page(pfn);
	bool pinned, unevictable;
	enum sol_stay stays;
	struct folio *folio;

	switch (sol_holder_of(page, e->id, &pinned, &unevictable)) {
	case SOL_HELD_OWN:
	case SOL_HELD_LISTED:
		e->batch.report->in_place++;
		return SOL_N_STAYS;
	case SOL_HELD_FREE:
		list_frame(e, pfn);
		return SOL_N_STAYS;
	case SOL_HELD_GROUPS:
		return SOL_STAYS_GROUPS;
	case SOL_HELD_KERNEL:
		return SOL_STAYS_KERNEL;
	default:
		break;
	}
	if (pinned)
		return SOL_STAYS_PINNED;
	if (unevictable && leave_locked())
		return SOL_STAYS_UNEVICTABLE;
	folio = page_folio(page);
	if (!folio_try_get(folio))
		return SOL_STAYS_BUSY;
	if (page_folio(page) != folio) {
		folio_put(folio);
		return SOL_STAYS_BUSY;
	}
	stays = evict_page(e, page);
	put_page(page);	/* after a split the reference is on this page */
	return stays;
}

static int visit(void *ctx, u64 pfn)
{
	struct eviction *e = ctx;
	enum sol_stay stays = evict_frame(e, pfn);

	e->batch.report->seen++;
	if (stays < SOL_N_STAYS)
		e->batch.report->stays[stays]++;
	if (sol_batch_full(&e->batch) || e->n_freed == SOL_BATCH_PAGES ||
	    e->unwritten.sb)
		return SOL_SWEEP_RESTS;
	return 0;
}

static int over(void *ctx)
{
	return sol_job_over(&evict_job);
}

/*
 * A later pass can move or drop the pages that are written now. While the rate waits, no file
 * is held, and spare frames only if finding them again takes longer.
 */
static int rest(void *ctx)
{
	struct eviction *e = ctx;

	flush(e);
	sol_unwritten_write(&e->unwritten);
	lend_spares(e);
	sol_job_pace(&evict_job);
	return sol_job_over(&evict_job);
}

/* ---- All of them ---- */

static int evict_pass(void *ctx)
{
	struct eviction *e = ctx;
	int err;

	e->missed = 0;
	/* A free frame that waits on a CPU's list of the kernel can't be listed. */
	sol_evacuate_drain();
	err = sol_sweep_run(&e->sweep);
	flush(e);
	free_spares(e);
	sol_job_pace(&evict_job);
	return err ?: !!e->missed;
}

static int run(struct sol_group *group, struct eviction *e)
{
	int err = sol_sweep_begin(&e->sweep, group);

	if (err)
		return err;
	e->avoid = kvcalloc(BITS_TO_LONGS(sol_store.map->n_cells),
			    sizeof(long), GFP_KERNEL);
	if (e->avoid) {
		note_avoided(e->avoid, e->sweep.cells);
		e->sweep.visit = visit;
		e->sweep.rest = rest;
		e->sweep.over = over;
		e->sweep.ctx = e;
		err = sol_job_passes(&evict_job, evict_pass, e);
	} else {
		err = -ENOMEM;
	}
	kvfree(e->avoid);
	sol_sweep_end(&e->sweep);
	return err;
}

int sol_evict(struct sol_group *group, const struct sol_job_how *how)
{
	struct eviction *e;
	int err;

	if (!rcu_access_pointer(group->cells))
		return sol_deny(-ENODATA, "evict: %s has no colours yet",
				group->name);
	err = sol_job_begin(&evict_job, group, how);
	if (err)
		return err;
	e = kzalloc(sizeof(*e), GFP_KERNEL);
	err = -ENOMEM;
	if (e) {
		INIT_LIST_HEAD(&e->spare);
		e->spares_nid = NUMA_NO_NODE;
		INIT_LIST_HEAD(&e->batch.pages);
		e->batch.asked = (struct sol_asked){ .ask = evict_target, .ctx = e };
		e->batch.report = &evict_job.report;
		e->id = group->id;
		err = run(group, e);
	}
	kfree(e);
	return sol_job_end(&evict_job, group, err);
}

ssize_t sol_evict_show(const struct sol_group *group, char *page)
{
	return sol_job_show(&evict_job, group, page);
}

void sol_evict_forget(const struct sol_group *group)
{
	sol_job_forget(&evict_job, group);
}

void sol_evict_init(void)
{
	locked_may_move = sol_symbol("sysctl_compact_unevictable_allowed");
}
