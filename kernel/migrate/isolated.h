/* SPDX-License-Identifier: GPL-2.0 */
/* Isolated CPUs: a page that moves interrupts each CPU that may know where it was. */
#ifndef SOLOIST_ISOLATED_H
#define SOLOIST_ISOLATED_H

#include <linux/types.h>

#include "batch.h"

/* Is a CPU of this machine isolated, by the kernel's command line or a cpuset? */
bool sol_any_isolated(void);

/**
 * sol_isolated_check() - may a page move without interrupting an isolated CPU?
 * @page: referenced by the caller
 *
 * Return: SOL_N_STAYS: it may; SOL_STAYS_ISOLATED; SOL_STAYS_BUSY: not known now.
 */
enum sol_stay sol_isolated_check(struct page *page);

#endif /* SOLOIST_ISOLATED_H */
