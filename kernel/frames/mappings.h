/* SPDX-License-Identifier: GPL-2.0 */
/* The address spaces that map a page. */
#ifndef SOLOIST_MAPPINGS_H
#define SOLOIST_MAPPINGS_H

#include <linux/types.h>

struct page;
struct vm_area_struct;

/**
 * sol_mappings_any() - does a mapping of a page have a property?
 * @page: referenced by the caller, who does not hold its folio's lock
 * @wait: wait for the locks of the mappings, though never for the folio's: may sleep
 * @has: the property
 * @arg: for @has
 *
 * Return: 1: one has it; 0: none has; -EBUSY: can't be told now; -ENOENT: never on this
 * kernel, where a walk over mappings can't be had.
 */
int sol_mappings_any(struct page *page, bool wait,
		     bool (*has)(struct vm_area_struct *vma, void *arg), void *arg);

void sol_mappings_init(void);

#endif /* SOLOIST_MAPPINGS_H */
