// SPDX-License-Identifier: GPL-2.0
/*
 * Evacuation: frames of a colour that others use are made free. The papers have no
 * such step: their lists hold all memory from boot on.
 *
 * A walk over a cell's frames takes those that are free. Clean page cache that nobody
 * maps, and that was not used again of late, is dropped: that costs no other frame and
 * no copy. Other page cache and the memory of uncoloured tasks migrate to wherever the
 * kernel finds room; it reclaims for that. It is compaction (mm/compaction.c), but for
 * frames that we choose. Pages in colour are left alone, and so are unevictable and
 * pinned ones. A huge page moves as a whole, to another huge block, unless it may be in
 * the colours of its task (huge.c).
 *
 * We never wait for a page lock that others hold: a page of a file whose server never
 * answers would stop us, and unloading, for ever.
 *
 * A round that found nothing is not repeated at once (struct sol_cell_state).
 *
 * Locking: what migration and reclaim take. May sleep; called by supply's threads and
 * by whoever writes `reserve`, not by faults.
 */
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/vmstat.h>

#include "../compat/evacuate.h"
#include "../compat/zones.h"
#include "../hook/hook.h"
#include "evacuate.h"
#include "huge.h"
#include "mappings.h"
#include "refill.h"

#define BATCH		SOL_REFILL_MAX
#define IN_VAIN		64u	/* frames of budget that a page costs if it stays */
#define BACKOFF_MIN	max(HZ / 10, 1)
#define BACKOFF_SHIFTS	5	/* so 3.2 s at most */

DEFINE_STATIC_CALL_NULL(sol_isolate, sol_isolate_fn);
DEFINE_STATIC_CALL_NULL(sol_migrate, sol_migrate_fn);
DEFINE_STATIC_CALL_NULL(sol_putback, sol_putback_fn);
DEFINE_STATIC_CALL_NULL(sol_drop, sol_drop_clean_fn);

typedef void sol_drain_fn(struct zone *zone);
DEFINE_STATIC_CALL_NULL(sol_drain_cpus, sol_drain_fn);
DEFINE_STATIC_CALL_NULL(sol_drain_here, sol_drain_fn);

static atomic64_t evacuated;

/**
 * struct evacuation - what a walk gathered
 * @pages: isolated folios, to migrate
 * @isolated: there are some
 * @dropped: folios that left the page cache; we have their last reference
 * @n_dropped: how many
 * @pfn: frames that are wanted of all these
 * @n: how many
 */
struct evacuation {
	struct list_head pages;
	bool isolated;
	struct folio *dropped[BATCH];
	u32 n_dropped;
	u32 pfn[BATCH];
	u32 n;
};

static bool can_go(struct page *page)
{
	return PageLRU(page) && !PageHWPoison(page) && !sol_store_owns(page) &&
	       !folio_test_unevictable(page_folio(page));
}

/* Only a hint: what the kernel itself would drop next. */
static bool can_drop(struct folio *folio)
{
	return folio_is_file_lru(folio) && !folio_test_active(folio) &&
	       !folio_mapped(folio) && !folio_test_dirty(folio) &&
	       !folio_test_writeback(folio);
}

/* Take @folio, to which we have a reference, out of the page cache. */
static bool drop(struct evacuation *e, struct folio *folio)
{
	bool gone;

	if (!can_drop(folio) || !folio_trylock(folio))
		return false;
	gone = can_drop(folio) && sol_drop_folio(folio);
	folio_unlock(folio);
	if (gone)
		e->dropped[e->n_dropped++] = folio;
	return gone;
}

static bool isolate(struct evacuation *e, struct folio *folio)
{
	u16 group;

	if ((folio_test_large(folio) && !SOL_EVACUATES_LARGE) ||
	    sol_huge_in_color(folio, &group) || !sol_isolate_page(&folio->page))
		return false;
	mod_node_page_state(folio_pgdat(folio),
			    NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    folio_nr_pages(folio));
	list_add(&folio->lru, &e->pages);
	e->isolated = true;
	return true;
}

/* A visitor: take the frame @pfn if it is free, or gather its page. */
static void gather(struct sol_refill *f, u64 pfn)
{
	struct evacuation *e = f->ctx;
	struct page *page = pfn_to_page(pfn);
	struct folio *folio;
	bool dropped, gone;

	if (!page_count(page)) {
		if (sol_refill_zone_ok(f, page_zone(page)))
			sol_refill_take(f, pfn);
		return;
	}
	if (!can_go(page))
		return;
	folio = page_folio(page);
	if (!folio_try_get(folio))
		return;
	gone = false;
	dropped = false;
	if (page_folio(page) == folio && can_go(page)) {
		dropped = drop(e, folio);
		gone = dropped || isolate(e, folio);
	}
	if (!dropped)
		folio_put(folio);
	if (!gone)
		return;
	e->pfn[e->n++] = pfn;
	f->want--;	/* no more than fit */
}

/*
 * Free what was dropped, and drain the kernel's list of this CPU, where the frames
 * are now. What migration freed is there, too, very probably.
 */
static void free_dropped(struct evacuation *e)
{
	migrate_disable();
	while (e->n_dropped)
		folio_put(e->dropped[--e->n_dropped]);
	static_call(sol_drain_here)(NULL);
	migrate_enable();
}

void sol_evacuate_drain_here(void)
{
	migrate_disable();
	static_call(sol_drain_here)(NULL);
	migrate_enable();
}

static void migrate(struct evacuation *e)
{
	static_call(sol_migrate)(&e->pages, sol_evacuate_target, NULL, 0,
				 MIGRATE_ASYNC, MR_COMPACTION, NULL);
	static_call(sol_putback)(&e->pages);
}

/* List the frames that are free now. */
static void list_freed(struct sol_refill *f, const struct evacuation *e)
{
	u32 before = f->got, i;

	for (i = 0; i < e->n; i++) {
		u32 got = f->got;

		sol_refill_take(f, e->pfn[i]);
		if (f->got == got)
			f->budget -= min(f->budget, IN_VAIN);
	}
	atomic64_add(f->got - before, &evacuated);
}

/* A round is over. */
static void back_off(struct sol_cell_state *state)
{
	u8 failures = READ_ONCE(state->move.found) ?
		      0 : READ_ONCE(state->move_failures) + 1;

	if (failures)
		WRITE_ONCE(state->move_after, jiffies +
			   (BACKOFF_MIN << min(failures - 1, BACKOFF_SHIFTS)));
	WRITE_ONCE(state->move_failures, min(failures, BACKOFF_SHIFTS + 1));
}

u32 sol_evacuate(u32 cell, u32 want, bool force, u32 *budget)
{
	struct sol_cell_state *state = &sol_cell_states[cell];
	struct evacuation e = { .pages = LIST_HEAD_INIT(e.pages) };
	struct sol_refill f = {
		.cell = cell,
		.node = sol_map_set_node(sol_store.map,
					 cell / sol_store.map->n_llc),
		.want = min(want, BATCH),
		.budget = *budget,
		.hard = true,
		.visit = gather,
		.ctx = &e,
	};
	bool round;

	if (!force && sol_cell_backs_off(cell))
		return 0;
	if (force)
		WRITE_ONCE(state->move.left, 0);
	round = sol_refill_walk(&f, &state->move);
	if (e.isolated)
		migrate(&e);
	if (e.n) {
		free_dropped(&e);
		list_freed(&f, &e);
	}
	if (f.got)
		WRITE_ONCE(state->move.found, true);
	if (round)
		back_off(state);
	*budget = f.budget;
	return f.got;
}

void sol_evacuate_drain(void)
{
	static_call(sol_drain_cpus)(NULL);
}

static bool all_zones_low(int nid, bool hard)
{
	struct sol_refill f = { .want = BATCH, .hard = hard };
	int z;

	for (z = SOL_LOWEST_ZONE; z <= ZONE_MOVABLE; z++) {
		struct zone *zone = &NODE_DATA(nid)->node_zones[z];

		if (populated_zone(zone) && sol_refill_zone_ok(&f, zone))
			return false;
	}
	return true;
}

bool sol_evacuate_memory_low(int nid)
{
	return all_zones_low(nid, false);
}

bool sol_evacuate_memory_short(int nid)
{
	return all_zones_low(nid, true);
}

u64 sol_evacuated(void)
{
	return atomic64_read(&evacuated);
}

int sol_evacuate_init(void)
{
	sol_mappings_init();
	return sol_bind(sol_isolate, "folio_isolate_lru") ?:
	       sol_bind(sol_migrate, "migrate_pages") ?:
	       sol_bind(sol_putback, "putback_movable_pages") ?:
	       sol_bind(sol_drop, SOL_DROP_SYMBOL) ?:
	       sol_bind(sol_drain_cpus, "drain_all_pages") ?:
	       sol_bind(sol_drain_here, "drain_local_pages");
}
