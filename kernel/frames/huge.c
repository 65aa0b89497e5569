// SPDX-License-Identifier: GPL-2.0
/*
 * Huge pages of coloured tasks. A group whose colours consist of whole blocks has them
 * from the kernel's own allocator (fault/fault.c), so that no frame says whose they are,
 * as it does for pages in the lists. The address spaces that map the page do.
 *
 * Whoever takes pages out of a group's colours asks here first. A page that can't be
 * asked about, because others hold its locks, stays.
 *
 * Locking: tries the folio's lock and, inside it, what a walk over its mappings takes;
 * waits for neither.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>

#include "../compat/mm.h"
#include "../group/bits.h"
#include "../hook/hook.h"
#include "huge.h"

typedef void rmap_walk_fn(struct folio *folio, struct rmap_walk_control *rwc);
DEFINE_STATIC_CALL_NULL(sol_huge_walk, rmap_walk_fn);
static bool can_walk;

static bool one_mapping(struct folio *folio, struct vm_area_struct *vma,
			unsigned long addr, void *arg)
{
	bool *found = arg;

	*found = sol_mm_stays(vma->vm_mm) &&
		 !test_bit(SOL_MMF_NO_THP, sol_mm_flags(vma->vm_mm));
	return !*found;
}

int sol_huge_in_color(struct folio *folio)
{
	bool found = false;
	struct rmap_walk_control walk = {
		.arg = &found,
		.try_lock = true,
		.rmap_one = one_mapping,
	};

	/* Page cache is nobody's: huge pages of files are in no task's colours. */
	if (!folio_test_large(folio) || !folio_test_anon(folio) ||
	    !folio_mapped(folio))
		return 0;
	if (!can_walk || !folio_trylock(folio))
		return -EBUSY;
	if (folio_test_anon(folio) && folio_mapped(folio))
		static_call(sol_huge_walk)(folio, &walk);
	folio_unlock(folio);
	return walk.contended ? -EBUSY : found;
}

void sol_huge_init(void)
{
	can_walk = !sol_bind(sol_huge_walk, "rmap_walk");
}
