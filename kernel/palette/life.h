/* SPDX-License-Identifier: GPL-2.0 */
/* Life of a group: making and removing one. All may sleep. */
#ifndef SOLOIST_LIFE_H
#define SOLOIST_LIFE_H

#include "../group/group.h"

struct sol_group *sol_group_new(const char *name, bool implicit);
void sol_group_remove(struct sol_group *group);
int sol_group_set_ephemeral(struct sol_group *group, bool yes);

/**
 * sol_group_when_emptied() - who is told of ephemeral groups that go by themselves
 * @forget: called before a group goes, with a reference held; may sleep
 */
void sol_group_when_emptied(void (*forget)(struct sol_group *group));

int sol_group_init(void);
void sol_group_exit(void);

#endif /* SOLOIST_LIFE_H */
