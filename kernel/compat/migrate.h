/* SPDX-License-Identifier: GPL-2.0 */
/* Migration: what mm/ keeps to itself, and reasons that came after 6.1. */
#ifndef SOLOIST_COMPAT_MIGRATE_H
#define SOLOIST_COMPAT_MIGRATE_H

#include <linux/gfp_types.h>
#include <linux/mempolicy.h>
#include <linux/migrate_mode.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/version.h>

/*
 * The beginning of struct migration_target_control (mm/internal.h), the same
 * from 5.8 to 7.3; hook/table.c holds it against this kernel's type information.
 * Looked at, never changed.
 */
struct sol_target {
	int nid;
	nodemask_t *nmask;
	gfp_t gfp_mask;
};

/*
 * mbind()'s callback for new pages, and the policy that it goes by; *@turn is
 * what interleaving begins with. Since 6.7 there is a struct migration_mpol
 * (mm/mempolicy.c) for it; before, the argument is the start of the range, all
 * of which has the new policy already, and mmap_lock is held.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
struct sol_mpol_target {
	struct mempolicy *pol;
	pgoff_t ilx;
};

static inline const struct mempolicy *sol_mpol_of_target(unsigned long private,
							 unsigned int *turn)
{
	const struct sol_mpol_target *target = (void *)private;

	*turn = target->ilx;
	return target->pol;
}
#else
static inline const struct mempolicy *sol_mpol_of_target(unsigned long private,
							 unsigned int *turn)
{
	const struct vm_area_struct *vma = find_vma(current->mm, private);

	*turn = 0;
	return vma ? vma->vm_policy : NULL;
}
#endif

/* folio_alloc_swap() that finds no room: an entry of 0, since 6.16 an errno. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define SOL_NO_SWAP	((unsigned long)-ENOMEM)
#else
#define SOL_NO_SWAP	0
#endif

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
