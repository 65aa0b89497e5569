/* SPDX-License-Identifier: GPL-2.0 */
/* Parts of the page allocator that are private to it (mm/internal.h). */
#ifndef SOLOIST_COMPAT_ALLOC_H
#define SOLOIST_COMPAT_ALLOC_H

#include <linux/highmem.h>
#include <linux/mmzone.h>
#include <linux/page_ref.h>
#include <linux/static_call.h>
#include <linux/nodemask.h>
#include <linux/version.h>

/* Its beginning; hook/table.c compares it with the type information. */
struct alloc_context {
	struct zonelist *zonelist;
	nodemask_t *nodemask;
	struct zoneref *preferred_zoneref;
	int migratetype;
	enum zone_type highest_zoneidx;
	bool spread_dirty_pages;
};

/*
 * vma_alloc_folio(): in 6.1 swap readahead and shmem come without a vma, or
 * with one that no address space has. Nothing that a task maps privately.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define SOL_IF_MM_OF_FOLIO(n)	SOL_IF_MM_MAYBE(n)
#define sol_vma_is_pseudo(vma)	(!(vma) || !(vma)->vm_mm)
#else
#define SOL_IF_MM_OF_FOLIO(n)	SOL_IF_MM(n)
#define sol_vma_is_pseudo(vma)	false
#endif

/*
 * An architecture that clears user pages by a macro of its own passes
 * __GFP_ZERO; the generic function of newer kernels leaves it to init_on_alloc.
 */
#if defined(vma_alloc_zeroed_movable_folio) || \
	defined(__HAVE_ARCH_ALLOC_ZEROED_USER_HIGHPAGE_MOVABLE)
#define SOL_ZERO_IS_ASKED_FOR	true
#else
#define SOL_ZERO_IS_ASKED_FOR	false
#endif

/* Prepare a page as the kernel does at hand-out; alloc_flags came in 7.3. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
typedef void sol_post_alloc_fn(struct page *page, unsigned int order,
			       gfp_t gfp, unsigned int alloc_flags);
DECLARE_STATIC_CALL(sol_post_alloc, sol_post_alloc_fn);

static inline void sol_page_prepare(struct page *page, gfp_t gfp)
{
	static_call(sol_post_alloc)(page, 0, gfp, 0);
}
#else
typedef void sol_post_alloc_fn(struct page *page, unsigned int order,
			       gfp_t gfp);
DECLARE_STATIC_CALL(sol_post_alloc, sol_post_alloc_fn);

static inline void sol_page_prepare(struct page *page, gfp_t gfp)
{
	static_call(sol_post_alloc)(page, 0, gfp);
}
#endif

/*
 * Pages leave get_page_from_freelist() with one reference. Since 6.14 they have none,
 * and the caller takes it. If a page had one earlier, a walk over frames could add its
 * own, and free the page when it drops that.
 */
#define SOL_FREELIST_PAGES_ARE_FROZEN	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0))

#endif /* SOLOIST_COMPAT_ALLOC_H */
