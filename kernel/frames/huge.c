// SPDX-License-Identifier: GPL-2.0
/*
 * Huge pages of coloured tasks. A group whose colours consist of whole blocks has them
 * from the kernel's own allocator (fault/fault.c), so that no frame says whose they are,
 * as it does for pages in the lists. The address spaces that map the page do.
 *
 * Whoever takes pages out of a group's colours asks here first. A page that can't be
 * asked about, because others hold its locks, stays.
 *
 * Locking: none of its own, and it waits for none (mappings.h).
 */
#include <linux/mm.h>

#include "../compat/mm.h"
#include "../group/bits.h"
#include "huge.h"
#include "mappings.h"

/* @group: u16, becomes the group of @vma's address space. */
static bool has_huge_in_color(struct vm_area_struct *vma, void *group)
{
	struct mm_struct *mm = vma->vm_mm;

	if (!sol_mm_stays(mm) || test_bit(SOL_MMF_NO_THP, sol_mm_flags(mm)))
		return false;
	*(u16 *)group = group_id_of_mm(mm);
	return true;
}

int sol_huge_in_color(struct folio *folio, u16 *group)
{
	int is;

	*group = 0;
	/* Page cache is nobody's: huge pages of files are in no task's colours. */
	if (!folio_test_large(folio) || !folio_test_anon(folio))
		return 0;
	is = sol_mappings_any(&folio->page, false, has_huge_in_color,
			      group);
	return is == -ENOENT ? -EBUSY : is;
}
