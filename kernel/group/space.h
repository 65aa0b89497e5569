/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address spaces: flags that keep Linux from moving, merging or replacing pages in
 * colour. docs/design/moves.md says how each mechanism is met.
 */
#ifndef SOLOIST_SPACE_H
#define SOLOIST_SPACE_H

#include <linux/types.h>

struct task_struct;

/**
 * sol_stay_tasks() - bring address spaces in line with the groups of their threads
 * @tasks: each joined or left a group, or its group's huge_ok changed, or it has colours
 *	now or has none any more; referenced
 * @n: how many
 *
 * Takes mmap_lock, so not under sol_group_mutex, which the fault path takes below
 * mmap_lock. May sleep.
 */
void sol_stay_tasks(struct task_struct **tasks, u32 n);

/* The same for one. */
static inline void sol_stay_task(struct task_struct *task)
{
	sol_stay_tasks(&task, 1);
}

int sol_stay_init(void);
void sol_stay_exit(void);

#endif /* SOLOIST_SPACE_H */
