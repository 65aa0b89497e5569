/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Debugging of free pages, as far as versions differ: what checks a page at
 * its free, and which features need the kernel's own hand-out hook.
 */
#ifndef SOLOIST_COMPAT_DEBUG_H
#define SOLOIST_COMPAT_DEBUG_H

#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/page_ref.h>

#include "../hook/hook.h"

/*
 * 6.1 defers its checks of a freed page to the time when it leaves the per-CPU
 * list, which a page of ours never reaches; later versions check before.
 */
static inline bool sol_page_bad(struct page *page)
{
	return unlikely(atomic_read(&page->_mapcount) != -1 ||
			page->mapping || page_ref_count(page)
#ifdef CONFIG_MEMCG
			|| page->memcg_data
#endif
		       );
}

/* Or may be: it can't be told. */
static inline bool sol_key_on(const char *name)
{
	struct static_key *key = sol_symbol(name);

	return !key || static_key_enabled(key);
}

/* Poisoned, unmapped, zeroed on free, shadowed or traced by the kernel. */
static inline bool sol_pages_are_debugged(void)
{
	return IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KMSAN) ||
	       sol_key_on("init_on_free") ||
	       (IS_ENABLED(CONFIG_PAGE_POISONING) &&
		sol_key_on("_page_poisoning_enabled")) ||
	       (IS_ENABLED(CONFIG_DEBUG_PAGEALLOC) &&
		sol_key_on("_debug_pagealloc_enabled")) ||
	       (IS_ENABLED(CONFIG_PAGE_OWNER) &&
		sol_key_on("page_owner_inited")) ||
	       IS_ENABLED(CONFIG_PAGE_TABLE_CHECK);
}

#endif /* SOLOIST_COMPAT_DEBUG_H */
