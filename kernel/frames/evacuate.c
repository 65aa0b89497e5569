// SPDX-License-Identifier: GPL-2.0
/*
 * Evacuation: frames of a colour that others use are made free. The papers have no
 * such step: their lists hold all memory from boot on.
 *
 * A walk over a cell's frames takes those that are free. Clean page cache that nobody
 * maps, and that was not used again of late, is dropped: that costs no other frame and
 * no copy. Other page cache and the memory of uncoloured tasks migrate to wherever the
 * kernel finds room; if a cpuset or a memory policy may bind it, only on its node. It is
 * compaction (mm/compaction.c), but for frames that we choose.
 * Pages in colour are left alone, and so are unevictable ones, and those of tasks on
 * isolated CPUs: to move them would interrupt these, and nobody asked for that. (Evict,
 * when asked, moves them: migrate/evict.c.) A huge page moves as a whole, to another
 * huge block, unless it may be in the colours of its task (huge.c). If no such block is
 * free, migrate_pages() splits it: its task has slower memory then, but the group has some.
 *
 * Pages of several cells are gathered and move together. Before that we adopt their
 * frames: the store counts them as in use, by nobody's group. So a frame that comes free
 * comes to our lists as any page in colour does. Otherwise it would go to the kernel's
 * list of this CPU. That would have to be drained each time, which costs more than
 * moving the page, and somebody else might be faster.
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
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "../compat/evacuate.h"
#include "../compat/nodes.h"
#include "../compat/zones.h"
#include "../hook/hook.h"
#include "cpu_list.h"
#include "evacuate.h"
#include "huge.h"
#include "isolated.h"
#include "mappings.h"
#include "refill.h"

#define IN_VAIN		64u	/* frames of budget that a page costs if it stays */
#define MOVE_BACKOFF_MIN	max(HZ / 10, 1)
#define MOVE_BACKOFF_SHIFTS	5	/* so 3.2 s at most */

DEFINE_STATIC_CALL_NULL(sol_isolate, sol_isolate_fn);
DEFINE_STATIC_CALL_NULL(sol_migrate, sol_migrate_fn);
DEFINE_STATIC_CALL_NULL(sol_putback, sol_putback_fn);
DEFINE_STATIC_CALL_NULL(sol_drop, sol_drop_clean_fn);

typedef void sol_drain_fn(struct zone *zone);
DEFINE_STATIC_CALL_NULL(sol_drain_cpus, sol_drain_fn);
DEFINE_STATIC_CALL_NULL(sol_drain_local, sol_drain_fn);

static atomic64_t evacuated;

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
static bool drop(struct sol_evacuation *e, struct folio *folio)
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

static bool isolate(struct sol_evacuation *e, struct folio *folio)
{
	u16 group;

	if ((folio_test_large(folio) && !SOL_EVACUATES_LARGE) ||
	    sol_huge_in_color(folio, &group) ||
	    (e->spare && sol_isolated_has(&folio->page, false)) ||
	    !sol_isolate_page(&folio->page))
		return false;
	mod_node_page_state(folio_pgdat(folio),
			    NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    folio_nr_pages(folio));
	list_add(&folio->lru, &e->pages);
	e->isolated = true;
	return true;
}

/* Frame @pfn, whose page @folio was dropped or isolated, is wanted. */
static void note_frame(struct sol_refill *f, struct folio *folio, u64 pfn)
{
	struct sol_evacuation *e = f->ctx;

	e->frame[e->n++] = (struct sol_evacuated){
		.pfn = pfn,
		.cell = f->cell,
		.adopted = !folio_test_large(folio) && sol_store_adopt(f->cell, pfn),
	};
	f->want--;	/* no more than are wanted */
}

/*
 * Does somebody hold the small page @folio, of which we have a reference, beside those who map
 * it? Then it can't move, and to try is dear: migration tries ten times, with a target each
 * time. Compaction tells such pages so.
 */
static bool is_held(struct folio *folio)
{
	return folio_test_anon(folio) && !folio_test_swapcache(folio) &&
	       !folio_test_large(folio) &&
	       folio_ref_count(folio) - 1 >
		       atomic_read(&folio_page(folio, 0)->_mapcount) + 1;
}

/* A visitor: take the frame @pfn if it is free, or gather its page. */
static void gather(struct sol_refill *f, u64 pfn)
{
	struct sol_evacuation *e = f->ctx;
	struct page *page = pfn_to_page(pfn);
	struct folio *folio;
	bool dropped = false;

	/* A frame of CMA can't be listed, so that its page would go for nothing. */
	if (!sol_refill_may_take(f, pfn))
		return;
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
	if (page_folio(page) == folio && can_go(page) && !is_held(folio)) {
		dropped = drop(e, folio);
		if (dropped || isolate(e, folio))
			note_frame(f, folio, pfn);
	}
	if (!dropped)
		folio_put(folio);
}

void sol_evacuate_drain_local(void)
{
	migrate_disable();
	static_call(sol_drain_local)(NULL);
	migrate_enable();
}

/* More are not asked. */
#define THREADS_ASKED	64

/* Does a cpuset or a policy of one of its threads say on which nodes @mm's memory lies? */
static bool has_nodes(struct mm_struct *mm)
{
	bool has = true;
#ifdef CONFIG_MEMCG
	struct task_struct *owner, *t;
	int n = 0;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	has = !owner || !sol_task_may_use_all(owner);
	if (!has)
		for_each_thread(owner, t)
			if (READ_ONCE(t->mempolicy) || ++n > THREADS_ASKED) {
				has = true;
				break;
			}
	rcu_read_unlock();
#endif
	return has;
}

/* Shared memory may have a policy of its own. */
static bool is_bound(struct vm_area_struct *vma, void *unused)
{
	return READ_ONCE(vma->vm_policy) ||
	       (vma->vm_ops && vma->vm_ops->get_policy) || has_nodes(vma->vm_mm);
}

/* Migration has not locked it yet. */
static bool may_leave_node(struct folio *folio)
{
	if (!folio_mapped(folio))
		return folio_is_file_lru(folio);
	return !sol_mappings_any(&folio->page, false, is_bound, NULL);
}

/* Our own hook lets a user's migrations pass, and these: we own the frames by now. */
static void migrate(struct sol_evacuation *e, bool reclaims)
{
	struct sol_evacuate_to to = { .reclaims = reclaims, .may_leave_node = may_leave_node };

	static_call(sol_migrate)(&e->pages, sol_evacuate_target, NULL,
				 (unsigned long)&to, MIGRATE_ASYNC, MR_SYSCALL, NULL);
	static_call(sol_putback)(&e->pages);
	INIT_LIST_HEAD(&e->pages);
	e->isolated = false;
	/* Without a try to reclaim it says nothing. */
	e->no_room |= reclaims && to.no_room;
}

/* Is frame @at free and listed now? */
static bool came_free(const struct sol_evacuated *at)
{
	struct sol_refill f = { .cell = at->cell };

	if (at->adopted)
		return sol_store_disown(at->pfn);
	sol_refill_take(&f, at->pfn);
	return f.got;
}

/* A round is over. */
static void move_backs_off(struct sol_cell_state *state)
{
	u8 failures = READ_ONCE(state->move.found) ?
		      0 : READ_ONCE(state->move_failures) + 1;

	if (failures)
		WRITE_ONCE(state->move_after, jiffies +
			   (MOVE_BACKOFF_MIN << min(failures - 1, MOVE_BACKOFF_SHIFTS)));
	WRITE_ONCE(state->move_failures, min(failures, MOVE_BACKOFF_SHIFTS + 1));
}

u32 sol_evacuate_gather(struct sol_evacuation *e, u32 cell, u32 want,
			bool force, u32 *budget)
{
	struct sol_cell_state *state = &sol_cell_states[cell];
	struct sol_refill f = {
		.cell = cell,
		.node = sol_map_set_node(sol_store.map,
					 cell / sol_store.map->n_llc),
		.want = min(want, SOL_EVACUATED_MAX - e->n),
		.budget = *budget,
		.hard = true,
		.visit = gather,
		.ctx = e,
	};
	bool round;

	if (!f.want || (!force && sol_cell_backs_off(cell)))
		return 0;
	if (!e->n)
		e->spare = sol_any_isolated();
	round = sol_refill_walk(&f, &state->move);
	if (f.got)
		WRITE_ONCE(state->move.found, true);
	if (round)
		move_backs_off(state);
	*budget = f.budget;
	return f.got;
}

u32 sol_evacuate_finish(struct sol_evacuation *e, bool reclaims, u32 *in_vain)
{
	bool whole = false;
	u32 got = 0, i;

	if (!e->n)
		return 0;
	if (e->isolated)
		migrate(e, reclaims);
	while (e->n_dropped)
		folio_put(e->dropped[--e->n_dropped]);
	for (i = 0; i < e->n; i++)
		whole |= !e->frame[i].adopted;
	if (whole)
		sol_evacuate_drain_local();
	sol_cpu_list_settle();
	for (i = 0; i < e->n; i++) {
		if (came_free(&e->frame[i])) {
			WRITE_ONCE(sol_cell_states[e->frame[i].cell].move.found, true);
			got++;
		}
	}
	*in_vain = e->n - got;
	e->n = 0;
	atomic64_add(got, &evacuated);
	return got;
}

u32 sol_evacuate(struct sol_evacuation *e, u32 cell, u32 want, bool force,
		 u32 *budget)
{
	u32 got, in_vain = 0;

	got = sol_evacuate_gather(e, cell, want, force, budget);
	got += sol_evacuate_finish(e, true, &in_vain);
	*budget -= min(*budget, in_vain * IN_VAIN);
	return got;
}

void sol_evacuate_anew(u32 cell)
{
	WRITE_ONCE(sol_cell_states[cell].move.left, 0);
}

bool sol_evacuate_in_round(u32 cell)
{
	return READ_ONCE(sol_cell_states[cell].move.left);
}

struct sol_evacuation *sol_evacuation_new(void)
{
	struct sol_evacuation *e = kzalloc(sizeof(*e), GFP_KERNEL);

	if (e)
		INIT_LIST_HEAD(&e->pages);
	return e;
}

void sol_evacuate_drain(void)
{
	static_call(sol_drain_cpus)(NULL);
}

static bool all_zones_low(int nid, bool hard)
{
	struct sol_refill f = { .want = SOL_REFILL_MAX, .hard = hard };
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
	       sol_bind(sol_drain_local, "drain_local_pages");
}
