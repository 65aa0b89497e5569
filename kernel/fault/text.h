/* SPDX-License-Identifier: GPL-2.0 */
/* Pages of files: which of them a coloured task has copies of. */
#ifndef SOLOIST_TEXT_H
#define SOLOIST_TEXT_H

#include <linux/mm_types.h>

/*
 * A page of @vma, a private mapping, is read: does it stay in the page cache?
 * @id: of the group. In a fault: the mapping stays.
 */
bool sol_text_stays(u16 id, struct vm_area_struct *vma);

#endif /* SOLOIST_TEXT_H */
