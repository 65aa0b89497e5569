/* SPDX-License-Identifier: GPL-2.0 */
/* Migrations that the user asks for: what differs between versions. */
#ifndef SOLOIST_COMPAT_MOVES_H
#define SOLOIST_COMPAT_MOVES_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pagewalk.h>
#include <linux/version.h>
#include <linux/writeback.h>

#include "evacuate.h"

/*
 * The callback that says where a page goes: a page with one reference, or NULL. @back
 * takes one back that was not used.
 */
struct sol_asked {
	struct page *(*ask)(struct page *src, void *ctx);
	void (*back)(struct page *page, void *ctx);
	void *ctx;
};

/* The callbacks of migrate_pages(); @private is a struct sol_asked. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
static inline struct folio *sol_ask_target(struct folio *src,
					   unsigned long private)
{
	const struct sol_asked *asked = (struct sol_asked *)private;
	struct page *page = asked->ask(&src->page, asked->ctx);

	return page ? page_folio(page) : NULL;
}

static inline void sol_target_back(struct folio *dst, unsigned long private)
{
	const struct sol_asked *asked = (struct sol_asked *)private;

	asked->back(&dst->page, asked->ctx);
}
#else
static inline struct page *sol_ask_target(struct page *src,
					  unsigned long private)
{
	const struct sol_asked *asked = (struct sol_asked *)private;

	return asked->ask(src, asked->ctx);
}

static inline void sol_target_back(struct page *dst, unsigned long private)
{
	const struct sol_asked *asked = (struct sol_asked *)private;

	asked->back(dst, asked->ctx);
}
#endif

/* Splitting a huge page: up to 6.8 without the order, which it then ignores. */
typedef int sol_split_fn(struct page *page, struct list_head *list,
			 unsigned int order);

/* Begin to write the dirty data of a file from @start to @end, its last byte. */
static inline void sol_flush_range(struct address_space *file, loff_t start, loff_t end)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	filemap_flush_range(file, start, end);
#else
	struct writeback_control how = {
		.sync_mode = WB_SYNC_NONE,
		.nr_to_write = LONG_MAX,
		.range_start = start,
		.range_end = end,
	};

	filemap_fdatawrite_wbc(file, &how);
#endif
}

typedef int sol_walk_fn(struct mm_struct *mm, unsigned long start,
			unsigned long end, const struct mm_walk_ops *ops,
			void *private);

/* The walk expects mmap_lock to be held for reading; said so since 6.5. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define SOL_WALK_LOCKED	.walk_lock = PGWALK_RDLOCK,
#else
#define SOL_WALK_LOCKED
#endif

#endif /* SOLOIST_COMPAT_MOVES_H */
