/* SPDX-License-Identifier: GPL-2.0 */
/* Address spaces of ended tasks, and pages, that CPUs keep. All may sleep. */
#ifndef SOLOIST_LAZY_H
#define SOLOIST_LAZY_H

#include <linux/cpumask.h>

/**
 * sol_lazy_let_go() - a kernel thread asks idle CPUs, and its own, to let go of them
 * @timeout: jiffies that this waits for them at most
 */
void sol_lazy_let_go(unsigned long timeout);

/**
 * sol_lazy_empty_batches() - ask CPUs that are not isolated for pages that wait for LRU lists
 * @isolated: isolated CPUs that are asked, too; NULL: none
 * @timeout: jiffies that this waits for them at most
 */
void sol_lazy_empty_batches(const struct cpumask *isolated, unsigned long timeout);

/**
 * sol_lazy_init() - find what CPUs are asked by; without it none is asked
 */
void sol_lazy_init(void);

/**
 * sol_lazy_exit() - wait for what is still asked; nobody may ask any more
 */
void sol_lazy_exit(void);

#endif /* SOLOIST_LAZY_H */
