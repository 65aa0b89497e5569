/* SPDX-License-Identifier: GPL-2.0 */
/* C sides of the hooks of the fault path, as the trampolines call them. */
#ifndef SOLOIST_FAULT_H
#define SOLOIST_FAULT_H

#include <linux/mm_types.h>

struct alloc_context;
struct sol_frame;
struct sol_owned;
struct zone;

/* The store's array of owned frames, as the trampolines read it. */
extern struct sol_owned sol_fault_owned;

unsigned long sol_fault_flags(struct vm_area_struct *vma, unsigned long addr,
			      unsigned long flags);
unsigned long sol_fault_folio(gfp_t gfp, int order, struct vm_area_struct *vma,
			      unsigned long addr);
unsigned long sol_fault_table(gfp_t gfp, unsigned int order, int alloc_flags,
			      const struct alloc_context *ac);
unsigned long sol_fault_freed(struct zone *zone, void *pcp, struct page *page,
			      int type, unsigned int order);
unsigned long sol_fault_freed_late(struct zone *zone, struct page *page,
				   unsigned long pfn, unsigned int order);

unsigned long sol_fault_oom(void);

int sol_fault_init(void);
void sol_fault_exit(void);

#endif /* SOLOIST_FAULT_H */
