/* SPDX-License-Identifier: GPL-2.0 */
/* Groups: making, changing and removing them; all of it may sleep. */
#ifndef SOLOIST_LIFE_H
#define SOLOIST_LIFE_H

#include "../group/group.h"

/* The map, under sol_group_mutex or in a group's own calls; NULL: none yet. */
const struct sol_map *sol_group_map(void);
int sol_group_map_set(const char *text, size_t len);

struct sol_group *sol_group_new(const char *name, bool implicit);
void sol_group_remove(struct sol_group *group);
int sol_group_set_ephemeral(struct sol_group *group, bool yes);

/* An ephemeral group goes by itself: who else must @forget it before? */
void sol_group_when_emptied(void (*forget)(struct sol_group *group));

int sol_group_edit(struct sol_group *group,
		   int (*edit)(struct sol_colors *colors, const void *arg),
		   const void *arg);
int sol_group_auto(struct sol_group *group, const struct sol_want *want);

/*
 * For exhaust=grow, in a fault (may sleep): @seen is ->n of the cells that the
 * caller found empty. 0: look again, there are more; -ENOSPC: no free colour.
 */
int sol_group_grow(struct sol_group *group, u32 seen);

u64 sol_group_reserve(struct sol_group *group, u64 frames);

u64 sol_group_capacity(const struct sol_group *group);

/**
 * struct sol_group_count - how many groups there are
 * @named: made by mkdir
 * @implicit: made by rules and by the mmap() ABI
 * @dead: removed, but with frames still in use
 */
struct sol_group_count {
	u32 named;
	u32 implicit;
	u32 dead;
};

void sol_group_count(struct sol_group_count *count);

struct sol_colors *sol_colors_new(const struct sol_map *map);
void sol_colors_copy(const struct sol_map *map, struct sol_colors *to,
		     const struct sol_colors *from);
void sol_colors_free(struct sol_colors *colors);

int sol_group_init(void);
void sol_group_exit(void);

#endif /* SOLOIST_LIFE_H */
