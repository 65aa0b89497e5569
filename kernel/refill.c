// SPDX-License-Identifier: GPL-2.0
/*
 * Refill: frames of the right colour out of the buddy allocator.
 *
 * The papers split whole blocks and list every frame of them, whatever its
 * colour (CAMC Algorithms 2 and 3). From a module that would mean allocating
 * blocks, which a kernel with init_on_alloc zeroes in full, n pages for each
 * page used. Instead single frames are taken out of the free blocks in which
 * they lie, by the function with which the kernel isolates broken frames
 * (take_page_off_buddy): nothing is zeroed, and no memory of other colours is
 * held back.
 *
 * Which frames? The cell of a frame is, within a naturally aligned region,
 * a linear function (over GF(2)) of the low bits of its number. It is solved
 * once per range of the map; the frames of a cell in a region are then one
 * solution, xor any sum of the null space. Each cell keeps a cursor and walks
 * the regions of its node from the top downwards. All cells walk the same way,
 * so they share the regions that are already broken up. When a stretch of
 * regions had nothing for some cells, the free lists themselves are searched
 * for any cell of the group, largest blocks first; and when that fails too, the
 * kernel is made to reclaim and compact (store.c: get_hard()).
 *
 * Never into the last reserves: a zone below its low watermark (min, in the
 * end) is left alone, and so are ZONE_DMA, CMA and isolated blocks.
 *
 * Locking: the cursors are racy on purpose; the zone's lock is held for a
 * bounded walk over its free lists, never together with a cell's. May sleep.
 */
#define pr_fmt(fmt) "soloist: " fmt

#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/vmalloc.h>

#include "compat/buddy.h"
#include "group.h"
#include "hook.h"
#include "store.h"

#define REGION_ORDER	10
#define REGION		(1ul << REGION_ORDER)
#define WALK_REGIONS	64	/* regions that one refill looks into */
#define WALK_BLOCKS	512	/* blocks of one free list */
#define BATCH_MAX	32

/* The frames of a cell within a region, for one range of the map. */
struct solver {
	u64 start;		/* frames [start, end) */
	u64 end;
	u32 node;
	bool linear;		/* else every frame is looked at */
	u8 rank;
	u8 n_null;
	u8 bit[REGION_ORDER];	/* frame bit that brought pivot i */
	u16 from[REGION_ORDER];	/* pivot i: frame bits ... */
	u32 image[REGION_ORDER];	/* ... and what they do to the cell */
	u16 null[REGION_ORDER];	/* frame bits that leave the cell alone */
};

/* Where the next refill of a cell begins, and how much it brings. */
struct cell_state {
	u32 region;	/* just above the region; 0: not begun */
	u16 step;	/* solutions of that region already looked at */
	u8 batch;
	unsigned long rest;	/* jiffies: a walk found nothing, none before */
	unsigned long dry;	/* jiffies: nor did a search of everything */
};

static struct solver *solvers;		/* ascending, as the map's ranges */
static u32 n_solvers;
static struct cell_state *states;	/* by cell */

DEFINE_STATIC_CALL_NULL(sol_take, sol_take_fn);
DEFINE_STATIC_CALL_NULL(sol_block_flags, sol_block_flags_fn);

/* ---- Solving ---- */

static void solver_add(struct solver *s, u8 bit, u32 image)
{
	u16 from = 1u << bit;
	u32 i;

	for (i = 0; i < s->rank; i++) {
		if (fls(image) && image >> (fls(s->image[i]) - 1) & 1) {
			image ^= s->image[i];
			from ^= s->from[i];
		}
	}
	if (!image) {
		s->null[s->n_null++] = from;
		return;
	}
	s->bit[s->rank] = bit;
	s->image[s->rank] = image;
	s->from[s->rank++] = from;
}

static void solver_make(struct solver *s, const struct sol_map *map,
			const struct sol_range *r)
{
	u64 probe = ALIGN(r->start >> SOL_FRAME_SHIFT, REGION);
	u32 bit, cell;

	s->start = r->start >> SOL_FRAME_SHIFT;
	s->end = r->end >> SOL_FRAME_SHIFT;
	s->node = r->node;
	s->linear = !((r->start ^ r->base) >> SOL_FRAME_SHIFT & (REGION - 1)) &&
		    probe + REGION <= s->end;
	if (!s->linear)
		return;
	cell = sol_map_cell(map, probe);
	for (bit = 0; bit < REGION_ORDER; bit++)
		solver_add(s, bit, cell ^ sol_map_cell(map, probe ^ 1ul << bit));
}

/*
 * Frame bits below 2^@order that change the cell by @diff; -1: none can.
 * Pivots are in the order of the bits that brought them.
 */
static int solve(const struct solver *s, u32 diff, u32 order)
{
	u32 i, x = 0;

	for (i = 0; i < s->rank && s->bit[i] < order; i++) {
		if (diff >> (fls(s->image[i]) - 1) & 1) {
			diff ^= s->image[i];
			x ^= s->from[i];
		}
	}
	return diff ? -1 : (int)x;
}

static const struct solver *solver_of(u64 pfn)
{
	u32 i;

	for (i = 0; i < n_solvers; i++)
		if (pfn < solvers[i].end)
			return pfn >= solvers[i].start ? &solvers[i] : NULL;
	return NULL;
}

/* ---- Taking ---- */

struct refill {
	u32 cell;
	u32 node;
	u32 want;
	u32 got;
	bool hard;		/* down to the min watermark */
	struct zone *zone;	/* the last one that was asked, and ... */
	bool zone_ok;		/* ... whether it has enough */
};

/* Does the zone stay above its watermark if we take what we want? */
static bool zone_has(struct refill *f, struct zone *zone)
{
	unsigned long mark;

	if (zone == f->zone)
		return f->zone_ok;
	f->zone = zone;
	mark = f->hard ? min_wmark_pages(zone) : low_wmark_pages(zone);
	mark += zone->lowmem_reserve[ZONE_NORMAL] + f->want;
	f->zone_ok = zone_idx(zone) >= ZONE_DMA32 &&
		     zone_page_state(zone, NR_FREE_PAGES) > mark;
	return f->zone_ok;
}

/* Is @page, or the block that it lies in, in the buddy allocator? A guess. */
static bool looks_free(struct page *page)
{
	unsigned long pfn = page_to_pfn(page);
	unsigned int order;

	for (order = 0; order <= REGION_ORDER; order++) {
		struct page *head = page - (pfn & ((1ul << order) - 1));

		if (PageBuddy(head))
			return page_private(head) >= order;
		if (page_count(head))
			return false;
	}
	return false;
}

static void take(struct refill *f, u64 pfn)
{
	struct page *page = pfn_to_page(pfn);

	if (pfn >= sol_store.n_frames || !looks_free(page) ||
	    !static_call(sol_take)(page))
		return;
	set_page_private(page, 0);
	sol_store_add(f->cell, pfn);
	f->got++;
}

/* The @i-th sum of the null space; without a solver, simply @i. */
static u32 null_sum(const struct solver *s, u32 i)
{
	u32 bit, x = 0;

	if (!s->linear)
		return i;
	for (bit = 0; i; bit++, i >>= 1)
		if (i & 1)
			x ^= s->null[bit];
	return x;
}

/*
 * Frames of the cell in the region at @base, of which @s has some, from the
 * @step-th on. Returns the step to go on with, 0: the region is done.
 */
static u32 take_from_region(struct refill *f, const struct solver *s, u64 base,
			    u32 step)
{
	u64 first = max(base, s->start), end = min(base + REGION, s->end);
	u32 n = REGION;
	u64 pfn;
	int x = 0;

	if (s->linear) {
		x = solve(s, sol_map_cell(sol_store.map, first) ^ f->cell,
			  REGION_ORDER);
		n = x < 0 ? 0 : 1u << s->n_null;
	}
	for (; step < n && f->got < f->want; step++) {
		pfn = base + ((first - base) ^ x ^ null_sum(s, step));
		if (pfn < first || pfn >= end ||
		    (!s->linear && sol_map_cell(sol_store.map, pfn) != f->cell))
			continue;
		take(f, pfn);
	}
	return step < n ? step : 0;
}

bool sol_block_usable(struct page *page)
{
	return static_call(sol_block_flags)(page, page_to_pfn(page),
					    MIGRATETYPE_MASK) <
	       MIGRATE_PCPTYPES;
}

static bool region_usable(struct refill *f, u64 pfn)
{
	struct page *page = pfn_to_online_page(pfn);

	return page && page_to_nid(page) == f->node &&
	       zone_has(f, page_zone(page)) && sol_block_usable(page);
}

/* The range of @node with the highest frames below @pfn. */
static const struct solver *solver_below(u32 node, u64 pfn)
{
	u32 i;

	for (i = n_solvers; i-- > 0;)
		if (solvers[i].node == node && solvers[i].start < pfn)
			return &solvers[i];
	return NULL;
}

/* Walk regions downwards from the cell's cursor; once round at most. */
static void walk_regions(struct refill *f)
{
	struct cell_state *st = &states[f->cell];
	u64 begin = READ_ONCE(st->region), pos = begin;
	u32 step = READ_ONCE(st->step), n;
	bool wrapped = !begin;

	for (n = 0; n < WALK_REGIONS && f->got < f->want; n++) {
		const struct solver *s;
		u64 base;

		s = solver_below(f->node, pos << REGION_ORDER);
		if (!s) {
			if (wrapped && n)
				break;
			wrapped = true;
			pos = U32_MAX;
			step = 0;
			continue;
		}
		pos = min(pos, DIV_ROUND_UP(s->end, REGION)) - 1;
		base = pos << REGION_ORDER;
		if (region_usable(f, max(base, s->start)))
			step = take_from_region(f, s, base, step);
		else
			step = 0;
		if (step)
			pos++;	/* there may be more */
		if (wrapped && pos < begin)
			break;
	}
	WRITE_ONCE(st->region, pos);
	WRITE_ONCE(st->step, step);
}

/* ---- Searching the free lists for any of several cells ---- */

/* Ascending cells, all of one node. */
struct targets {
	const u32 *cell;
	u32 n;
};

static bool is_target(const struct targets *t, u32 cell)
{
	u32 low = 0, high = t->n;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (t->cell[mid] == cell)
			return true;
		if (t->cell[mid] < cell)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/*
 * A frame of a target in the free block of 2^@order at @head, or SOL_NO_FRAME.
 * What cells a block has: that of its head, changed by any sum of the pivots.
 */
static u32 target_in_block(const struct targets *t, const struct solver *s,
			   u64 head, u32 order)
{
	u32 cell = sol_map_cell(sol_store.map, head), pivots = 0, i, bit, x;

	if (cell == SOL_NO_CELL)
		return SOL_NO_FRAME;
	while (s->linear && pivots < s->rank && s->bit[pivots] < order)
		pivots++;
	for (i = 0, x = 0; ; x ^= s->from[bit], cell ^= s->image[bit]) {
		if (is_target(t, cell))
			return head ^ x;
		if (++i >> pivots)
			return SOL_NO_FRAME;
		bit = __ffs(i);	/* Gray code */
	}
}

/* A frame and the cell to list it in. */
struct found {
	u32 n;
	u32 pfn[BATCH_MAX];
};

/* Under the zone's lock. */
static void scan_list(const struct targets *t, struct list_head *list,
		      u32 order, struct found *found)
{
	const struct solver *s;
	struct page *page;
	u32 seen = 0, pfn;

	list_for_each_entry(page, list, buddy_list) {
		if (++seen > WALK_BLOCKS || found->n == BATCH_MAX)
			break;
		s = solver_of(page_to_pfn(page));
		pfn = s ? target_in_block(t, s, page_to_pfn(page), order) :
			  SOL_NO_FRAME;
		if (pfn != SOL_NO_FRAME)
			found->pfn[found->n++] = pfn;
	}
}

static void scan_zone(struct refill *f, const struct targets *t,
		      struct zone *zone)
{
	static const int types[] = {
		MIGRATE_MOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE,
	};
	struct found found;
	unsigned long flags;
	int order, i;

	found.n = 0;
	spin_lock_irqsave(&zone->lock, flags);
	for (order = REGION_ORDER; order >= 0; order--)
		for (i = 0; i < ARRAY_SIZE(types); i++)
			scan_list(t, &zone->free_area[order].free_list[types[i]],
				  order, &found);
	spin_unlock_irqrestore(&zone->lock, flags);
	while (found.n && f->got < f->want) {
		u32 pfn = found.pfn[--found.n];

		f->cell = sol_map_cell(sol_store.map, pfn);
		take(f, pfn);
	}
}

u32 sol_refill_any(const u32 *cell, u32 n, u32 node, bool last)
{
	struct targets t = { .cell = cell, .n = n };
	struct refill f = { .node = node, .want = BATCH_MAX, .hard = last };
	int i;

	if (!node_online(node))
		return 0;
	for (i = ZONE_MOVABLE; i >= 0 && !f.got; i--) {
		struct zone *zone = &NODE_DATA(node)->node_zones[i];

		if (populated_zone(zone) && zone_has(&f, zone))
			scan_zone(&f, &t, zone);
	}
	return f.got;
}

/*
 * Blocks of 16 pages and more go straight back to the buddy allocator, but for
 * those of a huge page's size, which the CPU keeps.
 */
bool sol_make_room(u32 node, u32 order, gfp_t gfp)
{
	struct page *page;

	gfp = (gfp & (__GFP_IO | __GFP_FS)) | __GFP_RECLAIM | __GFP_NORETRY |
	      __GFP_NOWARN | __GFP_THISNODE | __GFP_MOVABLE | __GFP_HIGHMEM;
	page = node_online(node) ? alloc_pages_node(node, gfp, order) : NULL;
	if (!page)
		return false;
	__free_pages(page, order);
	return true;
}

u32 sol_refill(u32 cell, u32 want)
{
	struct refill f = {
		.cell = cell,
		.node = sol_map_set_node(sol_store.map,
					 cell / sol_store.map->n_llc),
		.want = want,
	};

	if (time_before(jiffies, READ_ONCE(states[cell].rest)))
		return 0;
	walk_regions(&f);
	if (!f.got)
		WRITE_ONCE(states[cell].rest, jiffies + HZ / 10);
	return f.got;
}

bool sol_refill_is_dry(u32 cell)
{
	return time_before(jiffies, READ_ONCE(states[cell].dry));
}

void sol_refill_set_dry(u32 cell)
{
	WRITE_ONCE(states[cell].dry, jiffies + HZ / 2);
}

u32 sol_refill_batch(u32 cell)
{
	u8 batch = READ_ONCE(states[cell].batch);

	WRITE_ONCE(states[cell].batch, clamp(batch * 2, 1, BATCH_MAX));
	return max_t(u8, batch, 1);
}

/* ---- Map ---- */

/* The map's nodes must be the kernel's, or local memory would be remote. */
static int check_nodes(const struct sol_map *map, struct sol_err *err)
{
	u32 i;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];
		u64 pfn = r->start >> SOL_FRAME_SHIFT;
		u64 end = r->end >> SOL_FRAME_SHIFT;

		for (; pfn < end; pfn += MAX_ORDER_NR_PAGES) {
			struct page *page = pfn_to_online_page(pfn);

			/* The nodes of holes are made up. */
			if (!page || PageReserved(page) ||
			    page_to_nid(page) == r->node)
				continue;
			snprintf(err->text, sizeof(err->text),
				 "address 0x%llx is on node %u by the map, but the kernel has it on node %d",
				 pfn << SOL_FRAME_SHIFT, r->node,
				 page_to_nid(page));
			return -EINVAL;
		}
	}
	return 0;
}

int sol_refill_set_map(const struct sol_map *map, struct sol_err *err)
{
	struct cell_state *st = NULL;
	struct solver *s = NULL;
	u32 i;

	if (map) {
		if (check_nodes(map, err))
			return -EINVAL;
		st = kvcalloc(map->n_cells, sizeof(*st), GFP_KERNEL);
		s = kvcalloc(map->n_ranges, sizeof(*s), GFP_KERNEL);
		if (!st || !s) {
			kvfree(st);
			kvfree(s);
			snprintf(err->text, sizeof(err->text),
				 "no memory for %u cells", map->n_cells);
			return -ENOMEM;
		}
		for (i = 0; i < map->n_cells; i++)
			st[i].rest = st[i].dry = jiffies;
		for (i = 0; i < map->n_ranges; i++)
			solver_make(&s[i], map, &map->range[i]);
	}
	/* No group is alive: nobody refills. */
	swap(st, states);
	swap(s, solvers);
	n_solvers = map ? map->n_ranges : 0;
	kvfree(st);
	kvfree(s);
	return 0;
}

int sol_refill_init(void)
{
	return sol_bind_take(sol_take) ?:
	       sol_bind(sol_block_flags, "get_pfnblock_flags_mask");
}

void sol_refill_exit(void)
{
	kvfree(states);
	kvfree(solvers);
}
