/* SPDX-License-Identifier: GPL-2.0 */
/* Filling lists beforehand; all may sleep, and last. */
#ifndef SOLOIST_PREFILL_H
#define SOLOIST_PREFILL_H

#include <linux/types.h>

struct sol_group;

/**
 * sol_store_reserve() - list known-zero frames in a group's colours
 * @group: referenced by the caller
 * @frames: how many shall be there, 4 KiB each
 *
 * Return: how many are there now; fewer when there is no more memory.
 */
u64 sol_store_reserve(struct sol_group *group, u64 frames);

/* Frames listed in the cells of @group. */
u64 sol_store_listed(struct sol_group *group);

/* All free memory into the lists, but for the watermarks. Frames listed. */
u64 sol_store_fill_all(void);

#endif /* SOLOIST_PREFILL_H */
