// SPDX-License-Identifier: GPL-2.0
/*
 * Is a page mapped already, although reading it faulted?
 *
 * The kernel clears a page's access flag to see whether the page is used. Most cores set
 * it again by themselves. Armv8.0 cores (Cortex-A53, A57, A72), and kernels without
 * CONFIG_ARM64_HW_AFDBM, take a fault for it. A coloured task must not copy the page then:
 * it would lose what it shares with its parent or with the page cache, and a full group
 * has no frame for the copy.
 *
 * Locking: interrupts are off, which keeps page tables from being freed, as in
 * get_user_pages_fast(). The answer may be old when it is given. Then the task gets a
 * page later, or a copy that it did not need.
 */
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "mapped.h"

/* Interrupts are off. */
static bool walk(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgdp = pgd_offset(mm, addr), pgd = READ_ONCE(*pgdp);
	p4d_t *p4dp, p4d;
	pud_t *pudp, pud;
	pmd_t *pmdp, pmd;

	if (pgd_none(pgd))
		return false;
	p4dp = p4d_offset_lockless(pgdp, pgd, addr);
	p4d = READ_ONCE(*p4dp);
	if (!p4d_present(p4d))
		return false;
	pudp = pud_offset_lockless(p4dp, p4d, addr);
	pud = READ_ONCE(*pudp);
	if (!pud_present(pud))
		return false;
	if (pud_leaf(pud))
		return true;
	pmdp = pmd_offset_lockless(pudp, pud, addr);
	pmd = READ_ONCE(*pmdp);
	if (!pmd_present(pmd))
		return false;
	if (pmd_leaf(pmd))
		return true;
	return pte_present(READ_ONCE(*pte_offset_kernel(&pmd, addr)));
}

bool sol_is_mapped(struct mm_struct *mm, unsigned long addr)
{
	unsigned long flags;
	bool mapped;

	if (arch_has_hw_pte_young())
		return false;
	local_irq_save(flags);
	mapped = walk(mm, addr);
	local_irq_restore(flags);
	return mapped;
}
