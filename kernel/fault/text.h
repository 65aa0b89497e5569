/* SPDX-License-Identifier: GPL-2.0 */
/* Pages of files: which of them a coloured task copies to its colours. */
#ifndef SOLOIST_FAULT_TEXT_H
#define SOLOIST_FAULT_TEXT_H

#include <linux/mm_types.h>

/**
 * sol_text_stays() - does a page that is read stay in the page cache?
 * @id: of the task's group
 * @vma: a private mapping; the caller is in a fault, so that it stays
 *
 * Return: true: the page stays; false: the task gets a copy in colour.
 */
bool sol_text_stays(u16 id, struct vm_area_struct *vma);

#endif /* SOLOIST_FAULT_TEXT_H */
