/* SPDX-License-Identifier: GPL-2.0 */
/* Huge pages of coloured tasks. */
#ifndef SOLOIST_HUGE_H
#define SOLOIST_HUGE_H

#include <linux/types.h>

struct folio;

/**
 * sol_huge_in_color() - may a large folio be in the colours of a task that maps it?
 * @folio: referenced by the caller, who does not hold its lock
 * @group: becomes the id of the group of such a task
 *
 * Does not sleep. Return: 0: it is not large, or no coloured task that may have huge
 * pages maps it; 1: it may be; -EBUSY: can't be told now.
 */
int sol_huge_in_color(struct folio *folio, u16 *group);

#endif /* SOLOIST_HUGE_H */
