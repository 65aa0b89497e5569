/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tasks that were found, each with a reference. The room for them is there before the first
 * is sought: who lacks it refuses, and has changed nothing yet. All may sleep.
 */
#ifndef SOLOIST_TASKS_H
#define SOLOIST_TASKS_H

#include <linux/types.h>

struct task_struct;

/**
 * struct sol_tasks - tasks that were found
 * @room: how many fit
 * @n: how many there are
 * @task: the tasks
 */
struct sol_tasks {
	u32 room;
	u32 n;
	struct task_struct *task[];
};

/**
 * sol_tasks_new() - room for tasks
 * @n: so many, and some more that come meanwhile
 *
 * Return: no task yet, to be freed by sol_tasks_free(); NULL: no memory.
 */
struct sol_tasks *sol_tasks_new(u32 n);

/* The same for all tasks that there are. */
struct sol_tasks *sol_tasks_new_for_all(void);

/**
 * sol_tasks_find() - find tasks, but no kernel threads
 * @tasks: without tasks; gets those that fit, threads of a process side by side
 * @pick: picks them, under RCU
 * @arg: for @pick
 */
void sol_tasks_find(struct sol_tasks *tasks,
		    bool (*pick)(struct task_struct *task, void *arg), void *arg);

/* Put the references of @tasks, which may be used again. */
void sol_tasks_put(struct sol_tasks *tasks);

/* The same, for good. NULL: nothing. */
void sol_tasks_free(struct sol_tasks *tasks);

#endif /* SOLOIST_TASKS_H */
