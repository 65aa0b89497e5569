// SPDX-License-Identifier: GPL-2.0
/*
 * Frame store: TintMalloc's matrix of colour lists, in the kernel.
 *
 * core/frames.c keeps the lists; this gives them memory (an array of 8 bytes
 * for each frame of the machine, a struct for each cell), locks, and the two
 * ways that are hot: a page out to a fault, a page back from a free. Filling
 * is in refill.c, keeping a reserve in reserve.c.
 *
 * The papers patch the buddy allocator and fill its colour lists from inside.
 * Here the buddy allocator does not know: a listed frame has left it, with
 * reference count 0, and comes back when it is freed, through a hook behind
 * the kernel's own checks.
 *
 * Pages go round over the cells of a group on a node, so that all its banks
 * are used alike, the next page in another bank set than the last. Content is
 * known to be zero only if this module zeroed it.
 *
 * Locking: a raw spinlock for each class of cells, interrupts off; a free may
 * come from any context. Nothing is called while one is held. A group is
 * looked up, charged and left within one section with preemption off.
 */
#define pr_fmt(fmt) "soloist: " fmt

#include <linux/mm.h>
#include <linux/highmem.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "compat/debug.h"
#include "group.h"
#include "hook.h"
#include "magazine.h"
#include "parts.h"
#include "store.h"

struct sol_frames sol_store;
struct sol_lock sol_locks[SOL_LOCKS];

static atomic64_t sol_taken, sol_given, sol_lost;

DEFINE_STATIC_CALL_NULL(sol_post_alloc, sol_post_alloc_fn);

typedef void drain_fn(struct zone *zone);
DEFINE_STATIC_CALL_NULL(sol_drain_cpus, drain_fn);
DEFINE_STATIC_KEY_FALSE(sol_debug_pages);

static void group_charge(u16 id, bool zero, bool table)
{
	struct sol_group *g = group_get_fast(id);

	if (!g)
		return;
	sol_group_add(g, hits, 1);
	if (zero)
		sol_group_add(g, zeroed, 1);
	if (table)
		sol_group_add(g, page_tables, 1);
	atomic_long_inc(&g->used);
}

/* Not ours to look at once ->used is down: the group may go. */
static void group_uncharge(u16 id)
{
	struct sol_group *g = group_get_fast(id);

	if (!g)
		return;
	sol_group_add(g, freed, 1);
	atomic_long_dec(&g->used);
}

/*
 * Take a frame of @cell for group @id. The group stays: the caller read its
 * cells in this very section with preemption off.
 */
static u32 frame_out(u32 cell, u16 id, gfp_t gfp, bool table, bool *zero)
{
	unsigned long flags;
	u32 pfn;

	raw_spin_lock_irqsave(sol_cell_lock(cell), flags);
	pfn = sol_frames_get(&sol_store, cell, id, gfp & __GFP_ZERO, zero);
	if (pfn != SOL_NO_FRAME)
		group_charge(id, *zero && (gfp & __GFP_ZERO), table);
	raw_spin_unlock_irqrestore(sol_cell_lock(cell), flags);
	return pfn;
}

/* Any listed frame of the group on @nid, beginning at its cursor. */
static u32 frame_on_node(struct sol_group *g, const struct sol_cells *cells,
			 const struct sol_place *place, u32 looks, gfp_t gfp,
			 bool *zero)
{
	int nid = place->nid;
	const u32 *cell = cells->cell + cells->first[nid];
	u32 n = cells->first[nid + 1] - cells->first[nid];
	u32 pfn, i;

	if (!n)
		return SOL_NO_FRAME;
	i = READ_ONCE(g->cursor[nid]) % n;
	for (looks = min(n, looks); looks; looks--) {
		u32 next = sol_cells_next(i, n, cells->per_set[nid]);

		if (sol_cell_listed(cell[i])) {
			pfn = frame_out(cell[i], g->id, gfp, place->table,
					zero);
			if (pfn != SOL_NO_FRAME) {
				WRITE_ONCE(g->cursor[nid], next);
				return pfn;
			}
		}
		i = next;
	}
	return SOL_NO_FRAME;
}

/* Page tables don't move, so they keep out of memory that must. */
static bool fit_for_table(u64 pfn)
{
	return page_zonenum(pfn_to_page(pfn)) != ZONE_MOVABLE;
}

/* A page from the lists of at most @looks cells. */
static struct page *get_looking(u16 id, const struct sol_place *place,
				u32 looks, gfp_t gfp)
{
	const struct sol_cells *cells;
	struct sol_group *g;
	u32 pfn = SOL_NO_FRAME;
	bool zero = false;

	if (place->nid >= SOL_MAX_NODES || !sol_place_allows(place, place->nid))
		return NULL;
	preempt_disable();
	g = group_get_fast(id);
	cells = g ? rcu_dereference_sched(g->cells) : NULL;
	if (cells)
		pfn = frame_on_node(g, cells, place, looks, gfp, &zero);
	preempt_enable();
	if (pfn == SOL_NO_FRAME)
		return NULL;
	if (place->table && !fit_for_table(pfn)) {
		sol_store_put(pfn_to_page(pfn));
		return NULL;
	}
	return sol_page_out(pfn, gfp, zero);
}

struct page *sol_store_get(u16 id, const struct sol_place *place, gfp_t gfp)
{
	return get_looking(id, place, SOL_LOOKS, gfp);
}

/* The @i-th cell of the group on @nid; SOL_NO_CELL: it has fewer. */
static u32 cell_of_group(u16 id, int nid, u32 i, bool from_cursor)
{
	const struct sol_cells *cells;
	u32 cell = SOL_NO_CELL, n;
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(id);
	cells = g ? rcu_dereference_sched(g->cells) : NULL;
	n = cells ? cells->first[nid + 1] - cells->first[nid] : 0;
	if (i < n) {
		if (from_cursor)
			i = sol_cells_turn(READ_ONCE(g->cursor[nid]) % n, n,
					   cells->per_set[nid], i);
		cell = cells->cell[cells->first[nid] + i];
	}
	preempt_enable();
	return cell;
}

static void note_refill(u16 id)
{
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(id);
	if (g)
		sol_group_add(g, refills, 1);
	preempt_enable();
}

/* Cell by cell, some of them. */
static struct page *get_by_cell(u16 id, const struct sol_place *place,
				gfp_t gfp)
{
	struct page *page;
	u32 looks, cell;

	for (looks = 0; looks < SOL_LOOKS; looks++) {
		cell = cell_of_group(id, place->nid, looks, true);
		if (cell == SOL_NO_CELL)
			return NULL;
		note_refill(id);
		if (!sol_refill(cell, sol_refill_batch(cell)))
			continue;
		page = sol_store_get(id, place, gfp);
		if (page)
			return page;
		/* Another task was quicker, or unfit for page tables. */
	}
	return NULL;
}

/* From any list, and then from wherever one is free. */
static struct page *get_any(u16 id, const struct sol_place *place, gfp_t gfp,
			    bool last)
{
	const struct sol_cells *cells;
	int nid = place->nid;
	struct sol_group *g;
	struct page *page;
	u32 got = 0;

	page = get_looking(id, place, U32_MAX, gfp);
	if (page)
		return page;
	rcu_read_lock();
	g = rcu_dereference(sol_groups[id]);
	cells = g ? rcu_dereference(g->cells) : NULL;
	if (cells)
		got = sol_refill_any(cells->cell + cells->first[nid],
				     cells->first[nid + 1] - cells->first[nid],
				     nid, last);
	rcu_read_unlock();
	return got ? get_looking(id, place, U32_MAX, gfp) : NULL;
}

/* With the kernel's help. */
static struct page *get_hard(u16 id, const struct sol_place *place, gfp_t gfp)
{
	static const u8 orders[] = { 4, 8, 10 };
	struct page *page;
	u32 i;

	page = get_any(id, place, gfp, true);
	for (i = 0; i < ARRAY_SIZE(orders) && !page; i++) {
		sol_make_room(place->nid, orders[i], gfp);
		page = get_any(id, place, gfp, true);
	}
	return page;
}

static struct page *get_filling_on(u16 id, const struct sol_place *place,
				   gfp_t gfp, bool hard)
{
	u32 mark = cell_of_group(id, place->nid, 0, false);
	struct page *page;

	if (mark == SOL_NO_CELL || (place->hurry && sol_refill_is_dry(mark)))
		return NULL;
	if (hard) {
		page = get_hard(id, place, gfp);
		if (!page)
			sol_refill_set_dry(mark);
	} else {
		page = get_by_cell(id, place, gfp) ?:
		       get_any(id, place, gfp, false);
	}
	return page;
}

/* The nearest node behind @done[] that @place allows, or NUMA_NO_NODE. */
static int next_node_near(const struct sol_place *place, unsigned long done)
{
	int nid, best = NUMA_NO_NODE;

	for_each_online_node(nid) {
		if (nid >= SOL_MAX_NODES || done >> nid & 1 ||
		    !sol_place_allows(place, nid))
			continue;
		if (best == NUMA_NO_NODE ||
		    node_distance(place->nid, nid) <
		    node_distance(place->nid, best))
			best = nid;
	}
	return best;
}

struct page *sol_store_get_filling(u16 id, const struct sol_place *place,
				   gfp_t gfp)
{
	struct sol_place at = *place;
	struct page *page = NULL;
	unsigned long done;
	bool hard = false;
	int busy;

	if (!gfpflags_allow_blocking(gfp))
		return NULL;
	busy = sol_busy_begin();
	/* All allowed nodes without effort, then with. */
	do {
		if (hard && place->hurry)
			sol_magazines_flush_seldom();
		else if (hard)
			sol_magazines_flush();
		done = 0;
		while (!page) {
			at.nid = next_node_near(place, done);
			if (at.nid == NUMA_NO_NODE)
				break;
			done |= 1ul << at.nid;
			page = sol_store_get(id, &at, gfp);
			if (!page)
				page = get_filling_on(id, &at, gfp, hard);
		}
		hard = !hard;
	} while (!page && hard);
	sol_busy_end(busy);
	return page;
}

/* A frame in use is ours no longer. Its cell is locked. */
static void frame_lost(u64 pfn)
{
	group_uncharge(sol_frames_forget(&sol_store, pfn));
	atomic64_inc(&sol_lost);
}

bool sol_store_put(struct page *page)
{
	u64 pfn = page_to_pfn(page);
	unsigned long flags;
	bool fit = !sol_page_bad(page);
	raw_spinlock_t *lock;
	u32 tag;

	tag = READ_ONCE(sol_store.frame[pfn].tag);
	lock = sol_cell_lock(tag & SOL_TAG_CELL);
	raw_spin_lock_irqsave(lock, flags);
	tag = sol_store.frame[pfn].tag;	/* a new map may have forgotten it */
	if (likely(fit && tag & SOL_TAG_USED)) {
		group_uncharge(sol_frames_put(&sol_store, pfn, false));
	} else {
		fit = false;
		if (tag & SOL_TAG_USED)
			frame_lost(pfn);
	}
	raw_spin_unlock_irqrestore(lock, flags);
	return fit;
}

void sol_store_forget(struct page *page)
{
	u64 pfn = page_to_pfn(page);
	u32 cell = READ_ONCE(sol_store.frame[pfn].tag) & SOL_TAG_CELL;
	unsigned long flags;

	raw_spin_lock_irqsave(sol_cell_lock(cell), flags);
	if (sol_store.frame[pfn].tag & SOL_TAG_USED)
		frame_lost(pfn);
	raw_spin_unlock_irqrestore(sol_cell_lock(cell), flags);
}

/*
 * List a frame that was just taken out of the buddy allocator. If its tag
 * says that it is in use, then it was freed past us.
 */
void sol_store_add(u32 cell, u64 pfn)
{
	unsigned long flags;

	raw_spin_lock_irqsave(sol_cell_lock(cell), flags);
	if (sol_store.frame[pfn].tag & SOL_TAG_USED)
		frame_lost(pfn);
	sol_frames_add(&sol_store, cell, pfn, false);
	raw_spin_unlock_irqrestore(sol_cell_lock(cell), flags);
	atomic64_inc(&sol_taken);
}

/* A frame that left its list goes back to the buddy allocator. */
void sol_store_give(u64 pfn)
{
	struct page *page = pfn_to_page(pfn);

	if (static_branch_unlikely(&sol_debug_pages))
		static_call(sol_post_alloc)(page, 0, GFP_KERNEL);
	set_page_private(page, 0);
	init_page_count(page);
	__free_page(page);
	atomic64_inc(&sol_given);
}

struct page *sol_store_twin(struct page *page, gfp_t gfp)
{
	u64 pfn = page_to_pfn(page), twin;
	bool zero = false;
	u32 tag, cell;
	u16 id;
	int busy;

	tag = READ_ONCE(sol_store.frame[pfn].tag);
	if (!(tag & SOL_TAG_USED))
		return NULL;
	cell = tag & SOL_TAG_CELL;
	/* The page is in use, so its group is there. */
	id = READ_ONCE(sol_store.frame[pfn].link);
	preempt_disable();
	twin = frame_out(cell, id, gfp, false, &zero);
	preempt_enable();
	if (twin == SOL_NO_FRAME && gfpflags_allow_blocking(gfp)) {
		busy = sol_busy_begin();
		sol_refill(cell, sol_refill_batch(cell));
		sol_busy_end(busy);
		preempt_disable();
		twin = frame_out(cell, id, gfp, false, &zero);
		preempt_enable();
	}
	return twin == SOL_NO_FRAME ? NULL : sol_page_out(twin, gfp, zero);
}

/* ---- Counting ---- */

/*
 * The number of cells, 0 without a map. The cells stay until sol_busy_end();
 * a new map waits for that.
 */
static u32 cells_begin(int *busy) __acquires(&sol_busy)
{
	const struct sol_map *map;

	*busy = sol_busy_begin();
	map = READ_ONCE(sol_store.map);
	return map ? map->n_cells : 0;
}

void sol_store_stats(struct sol_store_stats *stats)
{
	u64 at_hand;
	int busy;
	u32 n = cells_begin(&busy), i;

	memset(stats, 0, sizeof(*stats));
	for (i = 0; i < n; i++) {
		const struct sol_cell *c = &sol_store.cell[i];

		stats->listed += READ_ONCE(c->listed[0]);
		stats->listed += READ_ONCE(c->listed[1]);
		stats->zero += READ_ONCE(c->listed[1]);
		stats->used += READ_ONCE(c->used);
	}
	sol_busy_end(busy);
	at_hand = min(sol_magazines_count(), stats->used);
	stats->used -= at_hand;
	stats->listed += at_hand;
	stats->taken = atomic64_read(&sol_taken);
	stats->given = atomic64_read(&sol_given);
	stats->lost = atomic64_read(&sol_lost);
}

static u64 used_in_set(u32 bank_set)
{
	u32 n_llc = sol_store.map->n_llc;
	u64 sum = 0;
	u32 i;

	for (i = bank_set * n_llc; i < (bank_set + 1) * n_llc; i++)
		sum += READ_ONCE(sol_store.cell[i].used);
	return sum;
}

u64 sol_store_busy(const void *unused, u32 bank_set)
{
	u64 sum = used_in_set(bank_set);

	/* What a CPU keeps at hand is not in use. */
	if (sum) {
		sol_magazines_flush();
		sum = used_in_set(bank_set);
	}
	return sum;
}

static bool cell_on_node(u32 cell, int nid)
{
	const struct sol_map *map = sol_store.map;

	return nid == NUMA_NO_NODE ||
	       sol_map_set_node(map, cell / map->n_llc) == nid;
}

unsigned long sol_store_count(int nid)
{
	unsigned long sum = 0;
	int busy;
	u32 n = cells_begin(&busy), i;

	for (i = 0; i < n; i++)
		if (cell_on_node(i, nid))
			sum += sol_cell_listed(i);
	sol_busy_end(busy);
	return sum;
}

/* ---- Giving back ---- */

static u32 drain_one(u32 cell)
{
	unsigned long flags;
	u32 pfn;

	raw_spin_lock_irqsave(sol_cell_lock(cell), flags);
	pfn = sol_frames_drain(&sol_store, cell);
	raw_spin_unlock_irqrestore(sol_cell_lock(cell), flags);
	return pfn;
}

unsigned long sol_store_shrink(int nid, unsigned long n)
{
	static u32 begin;	/* racy: another cell each time */
	unsigned long given = 0;
	int busy;
	u32 cells = cells_begin(&busy), i, cell, pfn;

	for (i = 0; i < cells && given < n; i++) {
		cell = (READ_ONCE(begin) + i) % cells;
		if (!cell_on_node(cell, nid))
			continue;
		while (given < n && sol_cell_listed(cell)) {
			pfn = drain_one(cell);
			if (pfn == SOL_NO_FRAME)
				break;
			sol_store_give(pfn);
			given++;
		}
	}
	WRITE_ONCE(begin, READ_ONCE(begin) + i);
	sol_busy_end(busy);
	return given;
}

u64 sol_store_drain_all(void)
{
	u64 given = 0;
	int busy;
	u32 n = cells_begin(&busy), i, pfn;

	sol_magazines_flush();
	for (i = 0; i < n; i++) {
		while (sol_cell_listed(i)) {
			pfn = drain_one(i);
			if (pfn == SOL_NO_FRAME)
				break;
			sol_store_give(pfn);
			if (!(++given % 1024))
				cond_resched();
		}
		cond_resched();
	}
	sol_busy_end(busy);
	/* Not into the CPUs' lists of free pages, but where all can have them. */
	if (given)
		static_call(sol_drain_cpus)(NULL);
	return given;
}

/* Frames of one step of an eviction; freed outside the lock. */
struct sol_evicted {
	u32 n;
	u32 pfn[64];
};

static void note_evicted(void *ctx, u32 pfn)
{
	struct sol_evicted *ev = ctx;

	ev->pfn[ev->n++] = pfn;
}

void sol_store_evict(u64 start, u64 end)
{
	struct sol_evicted ev;
	unsigned long flags;
	int busy;
	u32 n = cells_begin(&busy), i, left;

	sol_magazines_flush();
	end = min_t(u64, end, sol_store.n_frames);
	for (i = 0; i < n; i++) {
		do {
			ev.n = 0;
			raw_spin_lock_irqsave(sol_cell_lock(i), flags);
			left = sol_frames_evict(&sol_store, i, start, end,
						ARRAY_SIZE(ev.pfn),
						note_evicted, &ev);
			raw_spin_unlock_irqrestore(sol_cell_lock(i), flags);
			while (ev.n)
				sol_store_give(ev.pfn[--ev.n]);
			cond_resched();
		} while (!left);
	}
	sol_busy_end(busy);
}

/* ---- Map, coming up, going down ---- */

/* Frames in use become the system's own. */
static void forget_all(void)
{
	u32 pfn;

	for (pfn = 0; pfn < sol_store.n_frames; pfn++) {
		u32 tag = READ_ONCE(sol_store.frame[pfn].tag);
		unsigned long flags;

		if (!(pfn % 65536))
			cond_resched();
		if (!(tag & SOL_TAG_USED))
			continue;
		raw_spin_lock_irqsave(sol_cell_lock(tag & SOL_TAG_CELL), flags);
		if (sol_store.frame[pfn].tag & SOL_TAG_USED)
			frame_lost(pfn);
		raw_spin_unlock_irqrestore(sol_cell_lock(tag & SOL_TAG_CELL),
					   flags);
	}
}

int sol_store_set_map(const struct sol_map *map, struct sol_err *err)
{
	struct sol_cell *old = sol_store.cell, *cell = NULL;
	int ret;

	if (map) {
		cell = kvcalloc(map->n_cells, sizeof(*cell), GFP_KERNEL);
		if (!cell) {
			snprintf(err->text, sizeof(err->text),
				 "no memory for the lists of %u cells",
				 map->n_cells);
			return -ENOMEM;
		}
	}
	ret = sol_refill_set_map(map, err);
	if (ret) {
		kvfree(cell);
		return ret;
	}
	/* A freed page may come at any time, until there is none in use. */
	do {
		sol_store_drain_all();
		forget_all();
	} while (sol_store_count(NUMA_NO_NODE));
	WRITE_ONCE(sol_store.map, NULL);
	synchronize_srcu(&sol_busy);
	if (map)
		sol_frames_init(&sol_store, map, sol_store.frame,
				sol_store.n_frames, cell);
	kvfree(old);
	return 0;
}

/*
 * Frame numbers end above the last node. Memory plugged in above that later
 * is not coloured: room for all that could be would be too much.
 */
static u64 frames_of_machine(void)
{
	u64 end = 0;
	int nid;

	for_each_online_node(nid)
		end = max_t(u64, end, node_end_pfn(nid));
	return end;
}

/* Are freed pages poisoned, unmapped or traced? Then the kernel dresses them. */
static int find_debug_pages(void)
{
	if (!sol_pages_are_debugged())
		return 0;
	static_branch_enable(&sol_debug_pages);
	return sol_bind(sol_post_alloc, "post_alloc_hook");
}

int sol_store_init(void)
{
	u64 n = frames_of_machine();
	u32 i;
	int err;

	if (n >= SOL_NO_FRAME) {
		pr_err("this machine's memory ends at frame %llu; at most %u are supported\n",
		       n, SOL_NO_FRAME);
		return -E2BIG;
	}
	for (i = 0; i < SOL_LOCKS; i++)
		raw_spin_lock_init(&sol_locks[i].lock);
	err = find_debug_pages() ?: sol_refill_init() ?:
	      sol_bind(sol_drain_cpus, "drain_all_pages");
	if (err)
		return err;
	sol_store.frame = vcalloc(n, sizeof(*sol_store.frame));
	if (!sol_store.frame)
		return -ENOMEM;
	sol_store.n_frames = n;
	return 0;
}

/* The hooks are off: nobody takes, nobody puts. */
void sol_store_exit(void)
{
	sol_store_drain_all();
	kvfree(sol_store.cell);
	vfree(sol_store.frame);
	sol_refill_exit();
}
