/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Taking one free page out of the buddy allocator: take_page_off_buddy(). The
 * kernel has it for isolating broken pages (CONFIG_MEMORY_FAILURE). Debian's 6.1
 * cloud kernel and Raspberry Pi OS's are built without: what it does stands here.
 */
#ifndef SOLOIST_COMPAT_BUDDY_H
#define SOLOIST_COMPAT_BUDDY_H

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/version.h>
#include <linux/vmstat.h>

#include "rows.h"

typedef bool sol_take_fn(struct page *page);

/* The type of a pageblock: a function of its own since 6.17. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
typedef enum migratetype sol_block_flags_fn(const struct page *page,
					    unsigned long pfn);
DECLARE_STATIC_CALL(sol_block_flags, sol_block_flags_fn);

static inline int sol_block_type(const struct page *page)
{
	return static_call(sol_block_flags)(page, page_to_pfn(page));
}
#else
typedef unsigned long sol_block_flags_fn(const struct page *page,
					 unsigned long pfn, unsigned long mask);
DECLARE_STATIC_CALL(sol_block_flags, sol_block_flags_fn);

static inline int sol_block_type(const struct page *page)
{
	return static_call(sol_block_flags)(page, page_to_pfn(page),
					    MIGRATETYPE_MASK);
}
#endif

#if defined(CONFIG_MEMORY_FAILURE)

#define SOL_TAKE_SYMBOL	"take_page_off_buddy"	/* else sol_take_off_buddy() */

#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 4, 0)

/* 2^@order free pages come (@sign 1) or go (-1). */
static inline void sol_buddy_count(struct zone *zone, unsigned int order, int sign)
{
	zone->free_area[order].nr_free += sign;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	if (order >= pageblock_order)
		__mod_zone_page_state(zone, NR_FREE_PAGES_BLOCKS, sign * (1L << order));
#endif
}

static inline void sol_buddy_unlist(struct zone *zone, struct page *page,
				    unsigned int order)
{
	__ClearPageReported(page);
	list_del(&page->buddy_list);
	__ClearPageBuddy(page);
	set_page_private(page, 0);
	sol_buddy_count(zone, order, -1);
}

static inline void sol_buddy_list(struct zone *zone, struct page *page,
				  unsigned int order, int type)
{
	list_add(&page->buddy_list, &zone->free_area[order].free_list[type]);
	sol_buddy_count(zone, order, 1);
	set_page_private(page, order);
	__SetPageBuddy(page);
}

/* @head of 2^@order leaves the free lists; all but @page go back in halves. */
static inline void sol_buddy_break(struct zone *zone, struct page *head,
				   struct page *page, unsigned int order)
{
	int type = sol_block_type(head);

	sol_buddy_unlist(zone, head, order);
	while (order-- > 0) {
		struct page *half = head + (1ul << order);

		if (page >= half) {
			sol_buddy_list(zone, head, order, type);
			head = half;
		} else {
			sol_buddy_list(zone, half, order, type);
		}
	}
	__mod_zone_page_state(zone, NR_FREE_PAGES, -1);
}

/*
 * As take_page_off_buddy(), but for CMA and for blocks that were isolated since the caller looked:
 * their free pages are counted elsewhere.
 */
static bool sol_take_off_buddy(struct page *page)
{
	struct zone *zone = page_zone(page);
	unsigned long pfn = page_to_pfn(page), flags;
	unsigned int order;
	bool taken = false;

	spin_lock_irqsave(&zone->lock, flags);
	for (order = 0; order < ARRAY_SIZE(zone->free_area); order++) {
		struct page *head = page - (pfn & ((1ul << order) - 1));

		if (PageBuddy(head)) {
			taken = page_private(head) >= order &&
				sol_block_type(head) < MIGRATE_PCPTYPES;
			if (taken)
				sol_buddy_break(zone, head, page,
						page_private(head));
			break;
		}
		if (page_count(head))
			break;
	}
	spin_unlock_irqrestore(&zone->lock, flags);
	return taken;
}

#else
#error "soloist knows the free lists of Linux up to 7.3: build this kernel with CONFIG_MEMORY_FAILURE=y"
#endif

#endif /* SOLOIST_COMPAT_BUDDY_H */
