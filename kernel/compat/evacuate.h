/* SPDX-License-Identifier: GPL-2.0 */
/* Migrating chosen pages: folios since 6.6, pages before. */
#ifndef SOLOIST_COMPAT_EVACUATE_H
#define SOLOIST_COMPAT_EVACUATE_H

#include <linux/gfp.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/static_call.h>
#include <linux/version.h>

/* Targets: movable memory, with some reclaim if the request allows it. */
static inline gfp_t sol_evacuate_gfp(unsigned long private)
{
	gfp_t gfp = (__force gfp_t)private;

	return (GFP_HIGHUSER_MOVABLE & ~__GFP_RECLAIM) |
	       (gfp & (__GFP_RECLAIM | __GFP_IO | __GFP_FS)) | __GFP_NORETRY |
	       __GFP_NOWARN;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)

typedef int sol_migrate_fn(struct list_head *from, new_folio_t new,
			   free_folio_t free, unsigned long private,
			   enum migrate_mode mode, int reason,
			   unsigned int *succeeded);

static inline struct folio *sol_evacuate_target(struct folio *src,
						unsigned long gfp)
{
	return __folio_alloc_node(sol_evacuate_gfp(gfp), 0, folio_nid(src));
}

#else

typedef int sol_migrate_fn(struct list_head *from, new_page_t new,
			   free_page_t free, unsigned long private,
			   enum migrate_mode mode, int reason,
			   unsigned int *succeeded);

static inline struct page *sol_evacuate_target(struct page *src,
					       unsigned long gfp)
{
	return alloc_pages_node(page_to_nid(src), sol_evacuate_gfp(gfp), 0);
}

#endif

/* It answered 0 or an errno before 6.3, true or false since. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
typedef bool sol_isolate_fn(struct folio *folio);
#define SOL_ISOLATED(answer)	(answer)
#else
typedef int sol_isolate_fn(struct folio *folio);
#define SOL_ISOLATED(answer)	(!(answer))
#endif

typedef void sol_putback_fn(struct list_head *pages);

DECLARE_STATIC_CALL(sol_isolate, sol_isolate_fn);

static inline bool sol_isolate_page(struct page *page)
{
	return SOL_ISOLATED(static_call(sol_isolate)(page_folio(page)));
}

#endif /* SOLOIST_COMPAT_EVACUATE_H */
