/* SPDX-License-Identifier: GPL-2.0 */
/* Colours of a group. All may sleep. */
#ifndef SOLOIST_COLORS_H
#define SOLOIST_COLORS_H

#include <linux/types.h>

struct config_item;
struct sol_colors;
struct sol_group;
struct sol_want;

int sol_group_edit(struct sol_group *group, const struct config_item *dir,
		   int (*edit)(struct sol_colors *colors, const void *arg),
		   const void *arg);
int sol_group_auto(struct sol_group *group, const struct config_item *dir,
		   const struct sol_want *want);
int sol_group_grow(struct sol_group *group, u32 seen);
int sol_group_reserve_begin(struct sol_group *group);
void sol_group_reserve_end(struct sol_group *group);
s64 sol_group_reserve(struct sol_group *group, const struct config_item *dir, u64 frames);
u64 sol_group_capacity(const struct sol_group *group);

#endif /* SOLOIST_COLORS_H */
