/* SPDX-License-Identifier: GPL-2.0 */
/* Reaping: the end of a group. All may sleep. */
#ifndef SOLOIST_REAP_H
#define SOLOIST_REAP_H

#include <linux/types.h>

struct sol_group;

/**
 * sol_group_retire() - a group colours no more; the second time nothing happens
 * @group: sol_group_mutex is held
 */
void sol_group_retire(struct sol_group *group);

/**
 * sol_reap_now() - free what can be freed of removed groups: numbers above all
 */
void sol_reap_now(void);

/**
 * sol_reap_drain() - ask CPUs for pages that wait in batches for their LRU lists
 * @isolated: isolated CPUs, too
 *
 * Those of ended tasks keep colours in use, and none of them can be isolated.
 *
 * Waits for a moment, and not until all have answered.
 */
void sol_reap_drain(bool isolated);

/**
 * sol_reap_init() - find what empties the kernel's batches
 *
 * Return: 0; -ENOENT if the kernel lacks it.
 */
int sol_reap_init(void);

/**
 * sol_reap_exit() - wait for what is queued, and free what can be freed
 */
void sol_reap_exit(void);

#endif /* SOLOIST_REAP_H */
