// SPDX-License-Identifier: GPL-2.0
/*
 * Refill: frames of the right colour come out of the buddy allocator.
 *
 * The papers split whole blocks and list every frame of them, whatever its colour
 * (CAMC Algorithms 2 and 3). From a module that would mean to allocate blocks, which
 * a kernel with init_on_alloc zeroes as a whole, n pages for each page used. Here
 * single frames are taken out of the free blocks in which they lie, by the function
 * with which the kernel isolates broken frames (take_page_off_buddy). Nothing is
 * zeroed, and no memory of other colours is held back.
 *
 * solver.h tells which frames are of a cell, region by region, from the top of the
 * node downwards. Each cell keeps a cursor. All walks go the same way, so that they
 * share the regions that are broken up already. A walk that has been all the way
 * round has looked at every frame once. Another round would find only frames that
 * came free behind it, so it waits. Each walk has a budget of frames to look at.
 *
 * The last reserves are left alone: no frame comes from a zone below its low
 * watermark, from x86's ZONE_DMA, CMA or isolated blocks. evacuate.c goes down to the
 * min watermark, and takes what it makes free in any case: that leaves the zone as it
 * is.
 *
 * Locking: cursors are racy on purpose. The zone's lock is held to take one frame,
 * never together with a cell's. May sleep.
 */
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmzone.h>

#include "../compat/buddy.h"
#include "../compat/zones.h"
#include "../hook/hook.h"
#include "array.h"
#include "refill.h"
#include "solver.h"

#define REFILL_BACKOFF_MIN	HZ
#define REFILL_BACKOFF_SHIFTS	5	/* so 32 s at most */

DEFINE_STATIC_CALL_NULL(sol_take, sol_take_fn);
DEFINE_STATIC_CALL_NULL(sol_block_flags, sol_block_flags_fn);

/* ---- Taking ---- */

bool sol_refill_zone_ok(struct sol_refill *f, struct zone *zone)
{
	unsigned long mark;

	if (zone == f->zone)
		return f->zone_ok;
	f->zone = zone;
	f->zone_ok = false;
	if (zone_idx(zone) < SOL_LOWEST_ZONE)
		return false;
	/*
	 * Fragmentation boosts the marks, so that kswapd reclaims ahead; the
	 * boost stays if it can't. That is no reason to kill a task: the
	 * kernel's own last resort (zone_watermark_fast()) ignores it, too.
	 */
	mark = f->hard ? zone->_watermark[WMARK_MIN] : low_wmark_pages(zone);
	/* Our frames are movable memory, from which lower zones keep a reserve. */
	mark += zone->lowmem_reserve[ZONE_MOVABLE] + f->want;
	/* Free memory of CMA is none that we may take: sol_block_usable(). */
	mark += zone_page_state(zone, NR_FREE_CMA_PAGES);
	f->zone_ok = zone_page_state(zone, NR_FREE_PAGES) > mark;
	f->short_of_memory |= !f->zone_ok;
	return f->zone_ok;
}

bool sol_block_usable(struct page *page)
{
	return sol_block_type(page) < MIGRATE_PCPTYPES;
}

/* As sol_block_usable(). The answers for the last two pageblocks are kept. */
static bool block_ok(struct sol_refill *f, struct page *page)
{
	u64 block = page_to_pfn(page) >> pageblock_order;
	u32 i = block & 1;

	if (f->block[i] != block + 1) {
		f->block[i] = block + 1;
		f->block_ok[i] = sol_array_has(page_to_pfn(page)) &&
				 sol_block_usable(page);
	}
	return f->block_ok[i];
}

bool sol_refill_may_take(struct sol_refill *f, u64 pfn)
{
	return block_ok(f, pfn_to_page(pfn));
}

/*
 * Take frame @pfn out of the buddy allocator if it is free. That nobody uses it and
 * none of our lists has it is a good guess, made without the zone's lock.
 */
static __always_inline bool take(struct sol_refill *f, u64 pfn)
{
	u32 tag = READ_ONCE(sol_frames_at(&sol_store, pfn)->tag);
	struct page *page = pfn_to_page(pfn);

	if (tag & (SOL_TAG_LISTED | SOL_TAG_HELD) || page_count(page) ||
	    !block_ok(f, page) || !static_call(sol_take)(page))
		return false;
	if (unlikely(tag))
		sol_store_forget(page);	/* its free did not come to us */
	set_page_private(page, 0);
	f->got++;
	return true;
}

void sol_refill_take(struct sol_refill *f, u64 pfn)
{
	u32 frame = pfn;

	if (take(f, pfn))
		sol_store_add(f->cell, &frame, 1);
}

/* ---- Walking ---- */

static void list_taken(struct sol_refill *f)
{
	if (f->n)
		sol_store_add(f->cell, f->taken, f->n);
	f->n = 0;
}

static __always_inline void visit(struct sol_refill *f, u64 pfn)
{
	if (f->visit) {
		f->visit(f, pfn);
	} else if (take(f, pfn)) {
		f->taken[f->n++] = pfn;
		if (f->n == SOL_REFILL_MAX)
			list_taken(f);
	}
}

/* As visit_region(), looking for one frame after the other. */
static u32 look_through_region(struct sol_refill *f, u64 base, u64 first,
			       u64 end, u32 step)
{
	u64 pfn = max(first, base + step);

	while (f->got < f->want && f->budget) {
		pfn = sol_map_next(sol_store.map, f->cell, pfn, end);
		if (pfn >= end)
			return 0;
		f->budget--;
		visit(f, pfn++);
	}
	return pfn < end ? pfn - base : 0;
}

/*
 * Visit frames of the cell in the region at @base, of which @s has some, from the
 * @step-th on. Return: the step to go on with; 0: the region is done.
 */
static u32 visit_region(struct sol_refill *f, const struct sol_solver *s,
			u64 base, u32 step)
{
	u64 first = max(base, s->start);
	u64 end = min3(base + SOL_REGION, s->end, (u64)sol_store.n_frames);
	u32 n, last, at;
	u64 pfn;
	int x;

	if (!s->linear)
		return look_through_region(f, base, first, end, step);
	x = sol_solve(s, s->head[base / SOL_REGION - s->start / SOL_REGION] ^
			 f->cell, SOL_REGION_ORDER);
	if (x < 0)
		return 0;
	n = 1u << s->n_null;
	/* A walk beside this one may have left a step of another range. */
	if (step >= n)
		step = 0;
	last = min(n - step, f->budget) + step;
	f->budget -= last - step;
	at = (first - base) ^ x ^ sol_null_sum(s, step);
	for (;;) {
		pfn = base + at;
		if (pfn - first < end - first)
			visit(f, pfn);
		if (++step == last || f->got >= f->want)
			break;
		at ^= s->carry[__ffs(step)];
	}
	f->budget += last - step;
	return step < n ? step : 0;
}

static bool region_usable(struct sol_refill *f, u64 pfn)
{
	struct page *page = pfn_to_online_page(pfn);

	return page && sol_is_on_node(page, f->node) &&
	       page_zonenum(page) >= SOL_LOWEST_ZONE &&
	       (f->visit || sol_refill_zone_ok(f, page_zone(page)));
}

/* Begin another round, unless @walk is in the middle of one. */
static void round_begin(struct sol_walk *walk, u32 node)
{
	if (READ_ONCE(walk->left))
		return;
	WRITE_ONCE(walk->left, sol_solver_regions(node));
	WRITE_ONCE(walk->found, false);
}

bool sol_refill_walk(struct sol_refill *f, struct sol_walk *walk)
{
	u32 step = READ_ONCE(walk->step), before = f->got, left;
	u64 top = READ_ONCE(walk->top);

	round_begin(walk, f->node);
	left = READ_ONCE(walk->left);
	while (left && f->budget && f->got < f->want) {
		const struct sol_solver *s;
		u64 base;

		/* The frames from top on were looked at. */
		s = sol_solver_below(f->node, top);
		if (!s && top < U32_MAX) {
			top = U32_MAX;
			step = 0;
			continue;
		}
		if (!s) {
			/* All of the node is beyond this machine's memory. */
			left = 0;
			break;
		}
		base = round_down(min(top, s->end) - 1, SOL_REGION);
		if (region_usable(f, max(base, s->start)))
			step = visit_region(f, s, base, step);
		else
			step = 0;
		if (!step) {
			/* Another range may have the rest of the region. */
			top = max(base, s->start);
			left--;
		}
		if (f->budget)
			f->budget--;
		cond_resched();
	}
	list_taken(f);
	WRITE_ONCE(walk->top, top);
	WRITE_ONCE(walk->step, step);
	WRITE_ONCE(walk->left, left);
	if (f->got != before)
		WRITE_ONCE(walk->found, true);
	return !left;
}

/* ---- Refilling a cell ---- */

void sol_refill_retry(u32 cell)
{
	struct sol_cell_state *state = &sol_cell_states[cell];

	WRITE_ONCE(state->refill_after, jiffies);
	WRITE_ONCE(state->move_after, jiffies);
	WRITE_ONCE(state->failures, 0);
	WRITE_ONCE(state->move_failures, 0);
	WRITE_ONCE(state->take.left, 0);
	WRITE_ONCE(state->move.left, 0);
}

/* A round is over: the next one has to wait, longer after each that found nothing. */
static void refill_backs_off(struct sol_cell_state *state)
{
	u8 failures = READ_ONCE(state->take.found) ? 0 : READ_ONCE(state->failures);

	WRITE_ONCE(state->refill_after, jiffies + (REFILL_BACKOFF_MIN << failures));
	WRITE_ONCE(state->failures, min(failures + 1, REFILL_BACKOFF_SHIFTS));
}

u32 sol_refill(u32 cell, u32 want, u32 *budget)
{
	struct sol_cell_state *state = &sol_cell_states[cell];
	struct sol_refill f = {
		.cell = cell,
		.node = sol_map_set_node(sol_store.map,
					 cell / sol_store.map->n_llc),
		.want = want,
		.budget = *budget,
	};

	if (time_before(jiffies, READ_ONCE(state->refill_after))) {
		*budget -= min(*budget, 1u);
		return 0;
	}
	/* A round that a zone without memory kept from frames says nothing. */
	if (sol_refill_walk(&f, &state->take) && !f.short_of_memory)
		refill_backs_off(state);
	*budget = f.budget;
	return f.got;
}

u32 sol_refill_batch(u32 cell)
{
	u8 batch = READ_ONCE(sol_cell_states[cell].batch);

	WRITE_ONCE(sol_cell_states[cell].batch, clamp(batch * 2, 1, SOL_REFILL_MAX));
	return max_t(u8, batch, 1);
}

static struct page *page_of_cell(u32 cell, u16 id, gfp_t gfp)
{
	struct sol_taken taken;
	bool got;

	preempt_disable();
	got = sol_store_take(cell, id, gfp, SOL_USE_MOVABLE, &taken);
	preempt_enable();
	return got ? sol_page_out(taken.pfn, gfp, taken.is_zero, SOL_USE_MOVABLE) :
		     NULL;
}

struct page *sol_refill_same_color(struct page *page, gfp_t gfp)
{
	const struct sol_frame *frame = sol_frames_at(&sol_store,
						      page_to_pfn(page));
	u32 tag, cell, budget = SOL_WALK_BUDGET;
	struct page *new;
	int users;
	u16 id;

	tag = READ_ONCE(frame->tag);
	if (!(tag & SOL_TAG_USED))
		return NULL;
	cell = tag & SOL_TAG_CELL;
	/* The page is in use, so its group exists. */
	id = READ_ONCE(frame->link);
	new = page_of_cell(cell, id, gfp);
	if (!new && gfpflags_allow_blocking(gfp)) {
		users = sol_lists_begin();
		sol_refill(cell, sol_refill_batch(cell), &budget);
		sol_lists_end(users);
		new = page_of_cell(cell, id, gfp);
	}
	return new;
}

static int bind_take(void)
{
#ifdef SOL_TAKE_SYMBOL
	return sol_bind(sol_take, SOL_TAKE_SYMBOL);
#else
	static_call_update(sol_take, sol_take_off_buddy);
	return 0;
#endif
}

int sol_refill_init(void)
{
	return bind_take() ?:
	       sol_bind(sol_block_flags, SOL_BLOCK_SYMBOL);
}
