/* SPDX-License-Identifier: GPL-2.0 */
/* Reaping: the end of a group. All may sleep. */
#ifndef SOLOIST_REAP_H
#define SOLOIST_REAP_H

struct sol_group;

/* @group colours no more, once. sol_group_mutex. */
void sol_group_retire(struct sol_group *group);

/* Free what can be freed of removed groups: numbers above all. */
void sol_reap_now(void);

/* Ask CPUs for pages of ended tasks that wait in batches; waits for a moment. */
void sol_reap_drain(void);

int sol_reap_init(void);	/* 0 or -ENOENT */
void sol_reap_exit(void);

#endif /* SOLOIST_REAP_H */
