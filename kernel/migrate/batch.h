/* SPDX-License-Identifier: GPL-2.0 */
/* Batches of pages that migrate to targets of our choice, and what became of them. */
#ifndef SOLOIST_BATCH_H
#define SOLOIST_BATCH_H

#include <linux/list.h>
#include <linux/types.h>

#include "../compat/moves.h"
#include "../group/group.h"

/* Why a page stayed where it is. */
enum sol_stay {
	SOL_STAYS_PINNED,	/* for a device */
	SOL_STAYS_UNEVICTABLE,	/* locked in memory, and the kernel is told to leave it */
	SOL_STAYS_GROUPS,	/* a group has it */
	SOL_STAYS_KERNEL,	/* the kernel's own */
	SOL_STAYS_SHARED,	/* with another process, since a fork */
	SOL_STAYS_ISOLATED,	/* moving it would interrupt an isolated CPU */
	SOL_STAYS_HUGE,		/* part of a huge page that can't be split now */
	SOL_STAYS_BUSY,		/* locked, written back or used otherwise */
	SOL_STAYS_NO_ROOM,	/* there was no target */
	SOL_N_STAYS
};

/**
 * struct sol_move_report - what became of the pages
 * @seen: pages looked at, in the last pass
 * @in_place: of these, already where they shall be
 * @moved: pages that migrated
 * @dropped: pages of the page cache that were clean, and went
 * @unmapped: pages of files that the next access copies
 * @listed: frames that came into the group's lists
 * @stays: pages that stayed in the last pass, by cause
 * @stood: how many pages stood still how long: a page does while its batch moves
 * @longest_us: no page stood still longer, microseconds
 * @took_us: since the beginning, microseconds
 */
struct sol_move_report {
	u64 seen;
	u64 in_place;
	u64 moved;
	u64 dropped;
	u64 unmapped;
	u64 listed;
	u64 stays[SOL_N_STAYS];
	u64 stood[SOL_TIMES];
	u64 longest_us;
	u64 took_us;
};

#define SOL_BATCH_PAGES	32

/**
 * struct sol_move_batch - pages that are isolated and will migrate together
 * @pages: the pages
 * @n: how many
 * @pfn: where they were, the first @n; recolouring finds memory beyond all maps, too
 * @target: page that each may go to, the first @n_targets
 * @is_taken: the kernel has it
 * @n_targets: how many were found
 * @asked: answers where each page goes, before the first one is unmapped
 * @report: where they are counted
 */
struct sol_move_batch {
	struct list_head pages;
	u32 n;
	u64 pfn[SOL_BATCH_PAGES];
	struct page *target[SOL_BATCH_PAGES];
	bool is_taken[SOL_BATCH_PAGES];
	u32 n_targets;
	struct sol_asked asked;
	struct sol_move_report *report;
};

/**
 * sol_page_spare() - may a page move without interrupting an isolated CPU?
 * @page: referenced by the caller
 *
 * Return: SOL_N_STAYS: it may; SOL_STAYS_ISOLATED; SOL_STAYS_BUSY: not known now.
 */
enum sol_stay sol_page_spare(struct page *page);

/**
 * sol_batch_add() - isolate a page, so that it can migrate
 * @batch: not full
 * @page: an order-0 page, referenced by the caller, who keeps the reference
 *
 * Return: false: it is on no LRU list now.
 */
bool sol_batch_add(struct sol_move_batch *batch, struct page *page);

static inline bool sol_batch_full(const struct sol_move_batch *batch)
{
	return batch->n == SOL_BATCH_PAGES;
}

/* Migrate the batch. It never waits for a lock that others hold. Count what stayed. */
void sol_batch_move(struct sol_move_batch *batch);

/**
 * struct sol_unwritten - dirty data of a disk's file
 * @sb: the file system, which does not end meanwhile; NULL: none
 * @inode: the file, with a reference; NULL: it is being removed
 * @start: its first byte
 * @end: its last one
 */
struct sol_unwritten {
	struct super_block *sb;
	struct inode *inode;
	loff_t start;
	loff_t end;
};

/**
 * sol_page_split() - split the large folio around a page
 * @page: referenced by the caller
 * @unwritten: none; becomes the folio's data if they are dirty, which keeps it from being
 *	split until they are written. NULL: the caller does not want to know
 *
 * May sleep. Return: it is split.
 */
bool sol_page_split(struct page *page, struct sol_unwritten *unwritten);

/*
 * Begin to write @unwritten, if there is any, which becomes none. Sleeps for as long as the
 * disk likes, and may end a file system: not in a section of the lists.
 */
void sol_unwritten_write(struct sol_unwritten *unwritten);

void sol_batch_init(void);

#endif /* SOLOIST_BATCH_H */
