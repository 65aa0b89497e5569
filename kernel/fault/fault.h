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

/*
 * The hooks have the arguments of the functions that they stand before, and their
 * context. What they return is what the function returns, or SOL_PASS, or flags.
 */

/**
 * sol_fault_flags() - before handle_mm_fault(), for reads
 * @vma: of the address
 * @addr: that was touched
 * @flags: of the fault, FAULT_FLAG_*
 *
 * Return: the flags to go on with.
 */
unsigned long sol_fault_flags(struct vm_area_struct *vma, unsigned long addr,
			      unsigned long flags);

/**
 * sol_fault_folio() - before vma_alloc_folio(): a folio in the group's colours
 * @gfp: of the request
 * @order: of the folio, in powers of two of pages
 * @vma: that it is for
 * @addr: that it is for
 *
 * Return: our folio; 0: none, and the fault fails; SOL_PASS: go on with the original.
 */
unsigned long sol_fault_folio(gfp_t gfp, int order, struct vm_area_struct *vma,
			      unsigned long addr);

/**
 * sol_fault_table() - before get_page_from_freelist(): a page table
 * @gfp: of the request; by it alone a page table is recognised
 * @order: of the request; ours is 0
 * @alloc_flags: of the request
 * @ac: of the request, whose first node is taken
 *
 * Return: our page; SOL_PASS: go on with the original.
 */
unsigned long sol_fault_table(gfp_t gfp, unsigned int order, int alloc_flags,
			      const struct alloc_context *ac);

/**
 * sol_fault_freed() - before free_unref_page_commit(): a page that may be ours
 * @zone: of the page
 * @pcp: the kernel's per-CPU list; since 7.0 its lock is held
 * @page: that is freed
 * @type: its migrate type
 * @order: of the page; ours is 0
 *
 * Return: true: it is ours again; SOL_PASS: go on with the original.
 */
unsigned long sol_fault_freed(struct zone *zone, void *pcp, struct page *page,
			      int type, unsigned int order);

/**
 * sol_fault_freed_late() - before free_one_page(), or within: a page that may be ours
 * @zone: of the page
 * @page: that is freed
 * @pfn: its frame number
 * @order: of the page; ours is 0
 *
 * Return: true: it is ours again; SOL_PASS: go on with the original.
 */
unsigned long sol_fault_freed_late(struct zone *zone, struct page *page,
				   unsigned long pfn, unsigned int order);

/**
 * sol_fault_oom() - before pagefault_out_of_memory(): was it a group that is exhausted?
 *
 * Return: 0: it was, and the task is dealt with; SOL_PASS: go on with the original.
 */
unsigned long sol_fault_oom(void);

/**
 * sol_fault_init() - attach the hooks; may sleep
 *
 * Return: 0, or an errno: none is attached.
 */
int sol_fault_init(void);

/**
 * sol_fault_exit() - detach the hooks, and wait until none runs; may sleep
 */
void sol_fault_exit(void);

#endif /* SOLOIST_FAULT_H */
