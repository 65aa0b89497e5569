/* SPDX-License-Identifier: GPL-2.0 */
/* Prefill: lists are filled ahead of need. All may sleep, and take long. */
#ifndef SOLOIST_PREFILL_H
#define SOLOIST_PREFILL_H

#include <linux/types.h>

struct config_item;
struct sol_group;

/**
 * sol_store_reserve() - list known-zero frames in a group's colours
 * @group: referenced by the caller
 * @dir: its directory, if one of its files was written; or NULL
 * @frames: how many shall be there
 *
 * Frames that other groups reserve in these colours count as theirs.
 *
 * Return: how many are there now; fewer than @frames if no more are free, if the current task
 * was killed, or if somebody removes @dir; -ENOMEM: nothing was tried.
 */
s64 sol_store_reserve(struct sol_group *group, const struct config_item *dir, u64 frames);

/* Frames listed in the cells of @group. */
u64 sol_store_listed(struct sol_group *group);

/* The same, but for those that other groups reserve. */
u64 sol_store_reserved(struct sol_group *group);

/* List all free memory above the watermarks. Return: false: the current task was killed before. */
bool sol_store_fill_all(void);

#endif /* SOLOIST_PREFILL_H */
