/* SPDX-License-Identifier: GPL-2.0 */
/* Isolated CPUs: a page that moves interrupts each CPU that may know where it was. */
#ifndef SOLOIST_ISOLATED_H
#define SOLOIST_ISOLATED_H

#include <linux/types.h>

struct page;

/* Is a CPU of this machine isolated, by the kernel's command line or a cpuset? */
bool sol_any_isolated(void);

/**
 * sol_isolated_has() - may an isolated CPU know where a page is?
 * @page: referenced by the caller
 * @wait: as of sol_mappings_any()
 *
 * Return: 0: none; 1: to move it would interrupt one; or an errno: that can't be told.
 */
int sol_isolated_has(struct page *page, bool wait);

#endif /* SOLOIST_ISOLATED_H */
