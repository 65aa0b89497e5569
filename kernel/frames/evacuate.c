// SPDX-License-Identifier: GPL-2.0
/*
 * Evacuation: page cache and memory of uncoloured tasks move out of frames of a
 * colour, before that counts as exhausted. The papers have no such step: their lists
 * hold all memory from boot on.
 *
 * It is compaction (mm/compaction.c), but for frames that we choose. Pages are
 * isolated from the LRU lists and migrated asynchronously to wherever the kernel
 * finds room; the kernel reclaims for that if the request may. Pages in colour are
 * left alone, and so are huge, unevictable and pinned ones. We never wait for a lock
 * that others hold: a page of a file whose server never answers would stop the
 * fault, and unloading, for ever.
 *
 * Locking: what migration takes. The caller is a fault that may reclaim, and holds no
 * more than direct compaction finds held.
 */
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/vmstat.h>

#include "../compat/evacuate.h"
#include "../hook/hook.h"
#include "evacuate.h"
#include "refill.h"

#define BATCH	32
#define IN_VAIN	64u	/* frames of budget that a page costs if it stays */

DEFINE_STATIC_CALL_NULL(sol_isolate, sol_isolate_fn);
DEFINE_STATIC_CALL_NULL(sol_migrate, sol_migrate_fn);
DEFINE_STATIC_CALL_NULL(sol_putback, sol_putback_fn);

typedef void sol_drain_fn(struct zone *zone);
DEFINE_STATIC_CALL_NULL(sol_drain_cpus, sol_drain_fn);
DEFINE_STATIC_CALL_NULL(sol_drain_here, sol_drain_fn);

static atomic64_t evacuated;

struct evacuation {
	struct list_head pages;
	u32 n;
	u32 pfn[BATCH];
};

static bool can_move(struct page *page)
{
	return PageLRU(page) && !PageCompound(page) &&
	       !folio_test_unevictable(page_folio(page)) &&
	       !PageHWPoison(page) && !sol_store_owns(page);
}

/* A visitor: isolate the page in frame @pfn, or take the frame if it is free. */
static void isolate(struct sol_refill *f, u64 pfn)
{
	struct evacuation *e = f->ctx;
	struct page *page = pfn_to_page(pfn);
	bool isolated;

	if (!can_move(page)) {
		sol_refill_take(f, pfn);
		return;
	}
	if (!get_page_unless_zero(page))
		return;
	isolated = can_move(page) && sol_isolate_page(page);
	put_page(page);
	if (!isolated)
		return;
	inc_node_page_state(page, NR_ISOLATED_ANON + folio_is_file_lru(page_folio(page)));
	list_add(&page->lru, &e->pages);
	e->pfn[e->n++] = pfn;
	f->want--;	/* no more than fit */
}

/* Frames that migration has just freed, very probably on this CPU. */
static void drain_here(void)
{
	migrate_disable();
	static_call(sol_drain_here)(NULL);
	migrate_enable();
}

void sol_evacuate_drain(u32 node)
{
	static_call(sol_drain_cpus)(NULL);
}

u32 sol_evacuate(u32 cell, gfp_t gfp, u32 *budget)
{
	struct evacuation e = { .pages = LIST_HEAD_INIT(e.pages) };
	struct sol_refill f = {
		.cell = cell,
		.node = sol_map_set_node(sol_store.map,
					 cell / sol_store.map->n_llc),
		.want = BATCH,
		.budget = *budget,
		.hard = true,
		.visit = isolate,
		.ctx = &e,
	};
	u32 i;

	WRITE_ONCE(sol_cell_states[cell].move.left, 0);	/* once round */
	sol_refill_walk(&f, &sol_cell_states[cell].move);
	if (e.n) {
		static_call(sol_migrate)(&e.pages, sol_evacuate_target, NULL,
					 (__force unsigned long)gfp,
					 MIGRATE_ASYNC, MR_COMPACTION,
					 NULL);
		static_call(sol_putback)(&e.pages);
		drain_here();
	}
	for (i = 0; i < e.n; i++) {
		u32 before = f.got;

		sol_refill_take(&f, e.pfn[i]);
		atomic64_add(f.got - before, &evacuated);
		if (f.got == before)
			f.budget -= min(f.budget, IN_VAIN);
	}
	*budget = f.budget;
	return f.got;
}

u64 sol_evacuated(void)
{
	return atomic64_read(&evacuated);
}

int sol_evacuate_init(void)
{
	return sol_bind(sol_isolate, "folio_isolate_lru") ?:
	       sol_bind(sol_migrate, "migrate_pages") ?:
	       sol_bind(sol_putback, "putback_movable_pages") ?:
	       sol_bind(sol_drain_cpus, "drain_all_pages") ?:
	       sol_bind(sol_drain_here, "drain_local_pages");
}
