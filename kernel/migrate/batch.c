// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: pages are isolated from their LRU lists and migrated by the kernel's own
 * migrate_pages(), to targets that the caller chooses.
 *
 * The mode is the asynchronous one. It gives up where it would wait for a page's lock or
 * for a file's server, so that nobody can make a batch endless; the caller tries again.
 *
 * The kernel unmaps the pages of a batch one after the other, and asks for the target of
 * each. A task that touches one waits until all have moved. So all targets are there
 * before.
 *
 * Locking: what migration takes; the caller holds nothing.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/vmstat.h>

#include "../compat/rows.h"
#include "../frames/isolated.h"
#include "../hook/hook.h"
#include "batch.h"

DEFINE_STATIC_CALL_NULL(sol_batch_split, sol_split_fn);

static bool can_split;

enum sol_stay sol_page_spare(struct page *page)
{
	switch (sol_isolated_has(page, true)) {
	case 0:
		return SOL_N_STAYS;
	case -EBUSY:
		return SOL_STAYS_BUSY;
	default:
		return SOL_STAYS_ISOLATED;
	}
}

bool sol_batch_add(struct sol_move_batch *batch, struct page *page)
{
	if (!PageLRU(page) || PageCompound(page) || PageHWPoison(page) ||
	    !sol_isolate_page(page))
		return false;
	inc_node_page_state(page, NR_ISOLATED_ANON +
				  folio_is_file_lru(page_folio(page)));
	list_add_tail(&page->lru, &batch->pages);
	batch->pfn[batch->n++] = page_to_pfn(page);
	return true;
}

static void find_targets(struct sol_move_batch *batch)
{
	const struct sol_asked *asked = &batch->asked;
	u32 i;

	for (batch->n_targets = 0; batch->n_targets < batch->n; batch->n_targets++) {
		i = batch->n_targets;
		batch->target[i] = asked->ask(pfn_to_page(batch->pfn[i]),
					      asked->ctx);
		if (!batch->target[i])
			break;
		batch->is_taken[i] = false;
	}
}

/*
 * The target that was found for @src, and no other: of two pages that wait for another try each
 * may be bound to a node of its own.
 */
static struct page *take_target(struct page *src, void *ctx)
{
	struct sol_move_batch *batch = ctx;
	u32 i;

	for (i = 0; i < batch->n_targets; i++)
		if (batch->pfn[i] == page_to_pfn(src) && !batch->is_taken[i]) {
			batch->is_taken[i] = true;
			return batch->target[i];
		}
	return NULL;
}

/* @page was not used: the page that it was found for may be tried again. */
static void target_back(struct page *page, void *ctx)
{
	struct sol_move_batch *batch = ctx;
	u32 i;

	for (i = 0; i < batch->n_targets; i++)
		if (batch->target[i] == page)
			batch->is_taken[i] = false;
}

static void free_targets(struct sol_move_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->n_targets; i++)
		if (!batch->is_taken[i])
			put_page(batch->target[i]);
}

/* The reason is a user's: pages that another group had may move, too. */
void sol_batch_move(struct sol_move_batch *batch)
{
	struct sol_move_report *r = batch->report;
	u64 refused = r->stays[SOL_STAYS_NO_ROOM], left;
	struct sol_asked ready = { take_target, target_back, batch };
	unsigned int moved = 0;
	ktime_t start;
	u64 ns;

	if (!batch->n)
		return;
	find_targets(batch);
	start = ktime_get();
	static_call(sol_migrate)(&batch->pages, sol_ask_target, sol_target_back,
				 (unsigned long)&ready, MIGRATE_ASYNC,
				 MR_SYSCALL, &moved);
	static_call(sol_putback)(&batch->pages);
	free_targets(batch);
	INIT_LIST_HEAD(&batch->pages);
	moved = min(moved, batch->n);
	left = batch->n - moved;
	/* The first page without a target ends the batch: it speaks for the rest. */
	if (r->stays[SOL_STAYS_NO_ROOM] > refused)
		r->stays[SOL_STAYS_NO_ROOM] = refused + left;
	else
		r->stays[SOL_STAYS_BUSY] += left;
	r->moved += moved;
	batch->n = 0;
	ns = ktime_to_ns(ktime_sub(ktime_get(), start));
	r->stood[sol_time_order(ns)] += moved;
	r->longest_us = max(r->longest_us, div_u64(ns, NSEC_PER_USEC));
}

/* Is @folio, which is locked, of a file with a store behind it? */
static bool is_of_file(struct folio *folio)
{
	return !folio_test_anon(folio) && !folio_test_swapbacked(folio) &&
	       folio->mapping;
}

static bool is_of_disk(struct folio *folio)
{
	struct super_block *sb = folio->mapping->host->i_sb;

	return sb_is_blkdev_sb(sb) ||
	       sb->s_type->fs_flags & FS_REQUIRES_DEV;
}

/*
 * Would splitting @folio, which is locked, wait for a file server? Its file system is asked to
 * let go of it first, and some then write it and wait for the server.
 */
static bool waits_for_server(struct folio *folio)
{
	return is_of_file(folio) && folio_has_private(folio) && !is_of_disk(folio);
}

/* Do dirty data of a disk's file keep @folio, which is locked, from being split? */
static bool waits_for_disk(struct folio *folio)
{
	return is_of_file(folio) && folio_test_dirty(folio) && is_of_disk(folio);
}

static void note_unwritten(struct folio *folio, struct sol_unwritten *unwritten)
{
	struct inode *inode;

	if (!unwritten || !waits_for_disk(folio))
		return;
	inode = folio->mapping->host;
	/* An inode that is in use at the end of its file system stops the kernel. */
	if (!atomic_inc_not_zero(&inode->i_sb->s_active))
		return;
	unwritten->sb = inode->i_sb;
	unwritten->inode = igrab(inode);
	unwritten->start = folio_pos(folio);
	unwritten->end = folio_pos(folio) + folio_size(folio) - 1;
}

bool sol_page_split(struct page *page, struct sol_unwritten *unwritten)
{
	struct folio *folio = page_folio(page);
	bool split = false;

	if (!can_split || !folio_test_lru(folio) || !folio_trylock(folio))
		return false;
	if (page_folio(page) == folio && folio_test_large(folio))
		split = !waits_for_server(folio) && !static_call(sol_batch_split)(page, NULL, 0);
	else
		split = page_folio(page) == folio;
	if (!split && page_folio(page) == folio)
		note_unwritten(folio, unwritten);
	/* Once split, the lock is that of the page that we hold. */
	folio_unlock(page_folio(page));
	return split;
}

void sol_unwritten_write(struct sol_unwritten *unwritten)
{
	if (!unwritten->sb)
		return;
	if (unwritten->inode) {
		sol_flush_range(unwritten->inode->i_mapping, unwritten->start,
				unwritten->end);
		iput(unwritten->inode);
	}
	deactivate_super(unwritten->sb);
	unwritten->sb = NULL;
}

void sol_batch_init(void)
{
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	can_split = !sol_bind(sol_batch_split, SOL_SPLIT_SYMBOL);
#endif
}
