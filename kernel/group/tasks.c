// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks that were found.
 *
 * Locking: tasks are found under RCU.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "tasks.h"

struct sol_tasks *sol_tasks_new(u32 n)
{
	u32 room = n + n / 4 + 64;
	struct sol_tasks *tasks;

	tasks = kvmalloc(struct_size(tasks, task, room), GFP_KERNEL);
	if (tasks)
		*tasks = (struct sol_tasks){ .room = room };
	return tasks;
}

struct sol_tasks *sol_tasks_new_for_all(void)
{
	struct task_struct *process, *task;
	u32 n = 0;

	rcu_read_lock();
	for_each_process_thread(process, task)
		n++;
	rcu_read_unlock();
	return sol_tasks_new(n);
}

void sol_tasks_find(struct sol_tasks *tasks,
		    bool (*pick)(struct task_struct *task, void *arg), void *arg)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (tasks->n < tasks->room && !(task->flags & PF_KTHREAD) && pick(task, arg))
			tasks->task[tasks->n++] = get_task_struct(task);
	rcu_read_unlock();
}

void sol_tasks_put(struct sol_tasks *tasks)
{
	while (tasks->n)
		put_task_struct(tasks->task[--tasks->n]);
}

void sol_tasks_free(struct sol_tasks *tasks)
{
	if (tasks)
		sol_tasks_put(tasks);
	kvfree(tasks);
}
