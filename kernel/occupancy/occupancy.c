// SPDX-License-Identifier: GPL-2.0
/*
 * Occupancy: who holds the memory of a group's colours.
 *
 * `exclusive` keeps other groups out of a group's colours. It does not keep out the
 * kernel, the page cache and tasks in no group, which were there before or came while
 * no list held the frames. This file counts them: a sweep looks at each frame's tag,
 * and at the struct page of a frame that is not ours. Nothing is counted as pages come
 * and go, so that faults pay nothing.
 *
 * A huge page has no tag of ours, whoever has it: the address spaces that map it say
 * whether it is a group's (frames/huge.h).
 *
 * Locking: none. A page that somebody uses may be freed and used anew at any time. So a
 * reference is taken before what it is used for is read, and the page is looked at
 * once more after that.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/page-flags.h>
#include <linux/sched/signal.h>

#include "../command/rmdir.h"
#include "../frames/huge.h"
#include "../frames/store.h"
#include "../group/group.h"
#include "occupancy.h"
#include "sweep.h"

/* Regions of 1024 frames that a sample has at most: 16 GiB of 4 KiB pages. */
static uint occupancy_sample = 4096;
module_param(occupancy_sample, uint, 0600);
MODULE_PARM_DESC(occupancy_sample, "for tests: regions of 1024 frames that a read of occupancy looks at, at most");

const char *const sol_holder_name[SOL_N_HELD] = {
	[SOL_HELD_OWN] = "own",
	[SOL_HELD_GROUPS] = "groups",
	[SOL_HELD_ANON] = "anon",
	[SOL_HELD_MAPPED] = "mapped",
	[SOL_HELD_CACHE] = "cache",
	[SOL_HELD_KERNEL] = "kernel",
	[SOL_HELD_LISTED] = "listed",
	[SOL_HELD_FREE] = "free",
};

/* Who holds the anonymous @folio, which is referenced, as seen by the group of @id. */
static enum sol_holder holder_of_anon(struct folio *folio, u16 id)
{
	u16 group;

	if (sol_huge_in_color(folio, &group) <= 0)
		return SOL_HELD_ANON;
	return group == id ? SOL_HELD_OWN : SOL_HELD_GROUPS;
}

/* Who holds the page in use @folio, which is referenced. */
static enum sol_holder holder_of_folio(struct folio *folio, u16 id,
				       bool *pinned, bool *unevictable)
{
	bool anon = folio_test_anon(folio);
	enum sol_holder holder;

	/* A new page may wait in a CPU's batch for its LRU list. */
	if (!folio_test_lru(folio) && !(anon && folio_mapped(folio)))
		return SOL_HELD_KERNEL;
	holder = anon ? holder_of_anon(folio, id) :
		 folio_mapped(folio) ? SOL_HELD_MAPPED : SOL_HELD_CACHE;
	if (holder == SOL_HELD_OWN || holder == SOL_HELD_GROUPS)
		return holder;
	*pinned = anon && folio_maybe_dma_pinned(folio);
	*unevictable = folio_test_unevictable(folio) ||
		       folio_test_mlocked(folio);
	return holder;
}

/* Who holds a frame that is not ours. */
static enum sol_holder holder_of_page(struct page *page, u16 id, bool *pinned,
				      bool *unevictable)
{
	enum sol_holder holder = SOL_HELD_FREE;
	struct folio *folio;

	if (PageReserved(page) || PageHWPoison(page) || PageSlab(page) ||
	    PageTable(page))
		return SOL_HELD_KERNEL;
	folio = page_folio(page);
	/* Without a reference: free, or frozen for the kernel's own use. */
	if (!folio_try_get(folio))
		return PageCompound(page) ? SOL_HELD_KERNEL : SOL_HELD_FREE;
	if (page_folio(page) == folio)
		holder = holder_of_folio(folio, id, pinned, unevictable);
	folio_put(folio);
	return holder;
}

enum sol_holder sol_holder_of(struct page *page, u16 id, bool *pinned,
			      bool *unevictable)
{
	const struct sol_frame *frame = sol_frames_at(&sol_store,
						      page_to_pfn(page));
	u32 tag = READ_ONCE(frame->tag);

	*pinned = false;
	*unevictable = false;
	if (tag & (SOL_TAG_LISTED | SOL_TAG_HELD))
		return SOL_HELD_LISTED;
	if (tag & SOL_TAG_USED)
		return READ_ONCE(frame->link) == id ? SOL_HELD_OWN :
						      SOL_HELD_GROUPS;
	return holder_of_page(page, id, pinned, unevictable);
}

/* ---- A look at many of them ---- */

/**
 * struct look - a look that goes on
 * @o: becomes the answer
 * @group: whose colours
 * @dir: its directory
 * @head: of the huge page that was looked at last: what holds for one of its frames
 *	holds for all, and to ask whose it is takes a microsecond
 * @holder: who holds that
 * @pinned: as of struct sol_occupancy
 * @unevictable: so, too
 */
struct look {
	struct sol_occupancy *o;
	const struct sol_group *group;
	const struct config_item *dir;
	const struct page *head;
	enum sol_holder holder;
	bool pinned;
	bool unevictable;
};

static int count(void *ctx, u64 pfn)
{
	struct page *page = pfn_to_page(pfn), *head = compound_head(page);
	struct look *look = ctx;

	if (head == page || head != look->head)
		look->holder = sol_holder_of(page, look->group->id,
					     &look->pinned, &look->unevictable);
	look->head = head;
	look->o->held[look->holder]++;
	look->o->pinned += look->pinned;
	look->o->unevictable += look->unevictable;
	return 0;
}

/* Nobody shall wait for a look. */
static int over(void *ctx)
{
	struct look *look = ctx;

	if (signal_pending(current))
		return -EINTR;
	return READ_ONCE(look->group->dead) || sol_rmdir_waits(look->dir) ?
	       -ENOENT : 0;
}

/* Counts of a sample become estimates of the whole. */
static void scale(struct sol_occupancy *o)
{
	int i;

	for (i = 0; i < SOL_N_HELD; i++)
		o->held[i] *= o->one_of;
	o->pinned *= o->one_of;
	o->unevictable *= o->one_of;
}

static u32 one_of(void)
{
	return DIV_ROUND_UP_ULL(sol_sweep_regions(),
				max(READ_ONCE(occupancy_sample), 1u));
}

int sol_occupancy_take(struct sol_group *group, const struct config_item *dir, bool all,
		       struct sol_occupancy *o)
{
	struct look look = {
		.o = o, .group = group, .dir = dir,
	};
	ktime_t start = ktime_get();
	struct sol_sweep sweep;
	int err;

	*o = (struct sol_occupancy){ .one_of = 1, .began = start };
	err = sol_sweep_begin(&sweep, group);
	if (err)
		return err == -ENODATA ? 0 : err;
	if (!all)
		o->one_of = one_of();
	sweep.one_of = o->one_of;
	sweep.visit = count;
	sweep.over = over;
	sweep.ctx = &look;
	err = sol_sweep_run(&sweep);
	o->looked = sweep.seen;
	sol_sweep_end(&sweep);
	scale(o);
	o->took_us = ktime_us_delta(ktime_get(), start);
	return err;
}
