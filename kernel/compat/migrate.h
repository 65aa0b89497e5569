/* SPDX-License-Identifier: GPL-2.0 */
/* Migration: what mm/ keeps to itself, and reasons that came after 6.1. */
#ifndef SOLOIST_COMPAT_MIGRATE_H
#define SOLOIST_COMPAT_MIGRATE_H

#include <linux/gfp_types.h>
#include <linux/migrate_mode.h>
#include <linux/nodemask.h>
#include <linux/types.h>
#include <linux/version.h>

struct mempolicy;

/*
 * The beginning of struct migration_target_control (mm/internal.h), the same
 * from 5.8 to 6.12. Looked at, never changed.
 */
struct sol_target {
	int nid;
	nodemask_t *nmask;
	gfp_t gfp_mask;
};

/* struct migration_mpol (mm/mempolicy.c), from 6.7 on. */
struct sol_mpol_target {
	struct mempolicy *pol;
	pgoff_t ilx;
};

/* Migrations that the kernel does for its own good. */
static inline bool sol_reason_refused(int reason)
{
	switch (reason) {
	case MR_COMPACTION:
	case MR_NUMA_MISPLACED:
	case MR_DEMOTION:
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	case MR_DAMON:
#endif
		return true;
	default:
		return false;
	}
}

#endif /* SOLOIST_COMPAT_MIGRATE_H */
