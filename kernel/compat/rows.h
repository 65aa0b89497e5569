/* SPDX-License-Identifier: GPL-2.0 */
/* Rows of hook/table.c that not every version has, and names that differ. */
#ifndef SOLOIST_COMPAT_ROWS_H
#define SOLOIST_COMPAT_ROWS_H

#include <linux/version.h>

/* The type of a pageblock: a function of its own since 6.17. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define SOL_BLOCK_SYMBOL	"get_pfnblock_migratetype"
#else
#define SOL_BLOCK_SYMBOL	"get_pfnblock_flags_mask"
#endif

/* mbind()'s callback for new pages, and whether it is given a private struct. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define SOL_MPOL_TARGET	"alloc_migration_target_by_mpol"
#define SOL_MPOL_STRUCT
#else
#define SOL_MPOL_TARGET	"new_page"
#endif

/* Splitting a huge page. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define SOL_SPLIT_SYMBOL	"__split_huge_page_to_list_to_order"
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define SOL_SPLIT_SYMBOL	"split_huge_page_to_list_to_order"
#else
#define SOL_SPLIT_SYMBOL	"split_huge_page_to_list"
#endif

/* Merging a whole address space (PR_SET_MEMORY_MERGE). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#define SOL_KSM_MERGE_ANY
#endif

/* The fair server; raw_spin_rq_unlock() became inline after 6.18. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define SOL_FAIR_SERVER
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define SOL_RQ_UNLOCK_INLINE
#endif
#endif

#endif /* SOLOIST_COMPAT_ROWS_H */
