/* SPDX-License-Identifier: GPL-2.0 */
/* The checks of a page that is freed. */
#ifndef SOLOIST_COMPAT_FREED_H
#define SOLOIST_COMPAT_FREED_H

#include <linux/mm.h>
#include <linux/page_ref.h>

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

#endif /* SOLOIST_COMPAT_FREED_H */
