/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Making chosen pages free: migration, by folios since 6.6, by pages before; and taking
 * clean ones out of the page cache.
 */
#ifndef SOLOIST_COMPAT_EVACUATE_H
#define SOLOIST_COMPAT_EVACUATE_H

#include <linux/gfp.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/static_call.h>
#include <linux/version.h>

/*
 * Targets: movable memory. kswapd is woken; the caller reclaims itself only if he says
 * so, and never for a huge block.
 */
static inline gfp_t sol_evacuate_gfp(unsigned int order, bool reclaims)
{
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | __GFP_NORETRY | __GFP_NOWARN;

	return order || !reclaims ? gfp & ~__GFP_DIRECT_RECLAIM : gfp;
}

/*
 * What the callback for targets is given, and what it answers: a small page had no target.
 */
struct sol_evacuate_to {
	bool reclaims;
	bool (*may_leave_node)(struct folio *folio);
	bool no_room;
};

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)

typedef int sol_migrate_fn(struct list_head *from, new_folio_t new,
			   free_folio_t free, unsigned long private,
			   enum migrate_mode mode, int reason,
			   unsigned int *succeeded);

static inline struct folio *sol_evacuate_target(struct folio *src,
						unsigned long private)
{
	struct sol_evacuate_to *to = (struct sol_evacuate_to *)private;
	unsigned int order = folio_order(src);
	gfp_t gfp = sol_evacuate_gfp(order, to->reclaims) | (order ? __GFP_COMP : 0);
	struct folio *dst;

	/* The node's clean page cache goes before a page leaves the node. */
	dst = __folio_alloc_node(gfp | __GFP_THISNODE, order, folio_nid(src));
	if (!dst && to->may_leave_node(src))
		dst = __folio_alloc_node(gfp, order, folio_nid(src));
	to->no_room |= !dst && !order;
	return dst;
}

#define SOL_EVACUATES_LARGE	true

#else

typedef int sol_migrate_fn(struct list_head *from, new_page_t new,
			   free_page_t free, unsigned long private,
			   enum migrate_mode mode, int reason,
			   unsigned int *succeeded);

static inline struct page *sol_evacuate_target(struct page *src,
					       unsigned long private)
{
	struct sol_evacuate_to *to = (struct sol_evacuate_to *)private;
	gfp_t gfp = sol_evacuate_gfp(0, to->reclaims);
	struct page *dst;

	/* The node's clean page cache goes before a page leaves the node. */
	dst = alloc_pages_node(page_to_nid(src), gfp | __GFP_THISNODE, 0);
	if (!dst && to->may_leave_node(page_folio(src)))
		dst = alloc_pages_node(page_to_nid(src), gfp, 0);
	to->no_room |= !dst;
	return dst;
}

/* A huge page would have to be prepared for its use by hand. */
#define SOL_EVACUATES_LARGE	false

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
DECLARE_STATIC_CALL(sol_migrate, sol_migrate_fn);
DECLARE_STATIC_CALL(sol_putback, sol_putback_fn);

static inline bool sol_isolate_page(struct page *page)
{
	return SOL_ISOLATED(static_call(sol_isolate)(page_folio(page)));
}

/* Takes a locked, clean folio out of the page cache if nobody else uses it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)

#define SOL_DROP_SYMBOL	"mapping_evict_folio"
typedef long sol_drop_clean_fn(struct address_space *mapping, struct folio *folio);
DECLARE_STATIC_CALL(sol_drop, sol_drop_clean_fn);

static inline bool sol_drop_folio(struct folio *folio)
{
	return static_call(sol_drop)(folio_mapping(folio), folio);
}

#else

#define SOL_DROP_SYMBOL	"invalidate_inode_page"
typedef long sol_drop_clean_fn(struct page *page);
DECLARE_STATIC_CALL(sol_drop, sol_drop_clean_fn);

static inline bool sol_drop_folio(struct folio *folio)
{
	return static_call(sol_drop)(&folio->page);
}

#endif

#endif /* SOLOIST_COMPAT_EVACUATE_H */
