/* SPDX-License-Identifier: GPL-2.0 */
/* Is a page mapped already, although reading it faulted? */
#ifndef SOLOIST_FAULT_MAPPED_H
#define SOLOIST_FAULT_MAPPED_H

#include <linux/mm_types.h>

/**
 * sol_is_mapped() - does a read fault only say that the page is used again?
 * @mm: the caller is in a fault of it, so that its page tables stay
 * @addr: in @mm, bytes
 *
 * Where cores set the access flag themselves nobody has to ask; then the answer is no.
 *
 * Return: true: a page is mapped there.
 */
bool sol_is_mapped(struct mm_struct *mm, unsigned long addr);

#endif /* SOLOIST_FAULT_MAPPED_H */
