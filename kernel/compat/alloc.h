/* SPDX-License-Identifier: GPL-2.0 */
/* What the page allocator keeps to itself (mm/internal.h), 6.1 to 6.12. */
#ifndef SOLOIST_COMPAT_ALLOC_H
#define SOLOIST_COMPAT_ALLOC_H

#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/version.h>

/* The beginning of it; the same in all supported versions. */
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
#define SOL_IF_MM_OF_FOLIO(reg)	SOL_IF_MM_MAYBE(reg)
#define sol_vma_is_pseudo(vma)	(!(vma) || !(vma)->vm_mm)
#else
#define SOL_IF_MM_OF_FOLIO(reg)	SOL_IF_MM(reg)
#define sol_vma_is_pseudo(vma)	false
#endif

#endif /* SOLOIST_COMPAT_ALLOC_H */
