// SPDX-License-Identifier: GPL-2.0
/*
 * Joining and leaving: tasks change their group.
 *
 * A task that exits sets PF_EXITING, then gives its number back. The one who puts a
 * task into a group writes the number, then looks at PF_EXITING. One of the two sees
 * what the other did, so that no reference is left behind.
 *
 * Locking: sol_group_mutex around checking and joining, so that the group's colours
 * do not change in between.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "../command/status.h"
#include "group.h"
#include "member.h"
#include "space.h"

/* Tasks that one walk finds. */
#define AT_ONCE	32

/* Is @group there, and @task no kernel thread? Words if not. */
static int check_both(struct sol_group *group, struct task_struct *task)
{
	int err = sol_group_check_living(group);

	lockdep_assert_held(&sol_group_mutex);
	if (!err && task->flags & PF_KTHREAD)
		err = sol_deny(-EINVAL,
			"%s: %d is a kernel thread, it has no memory to colour",
			group->name, task_pid_vnr(task));
	return err;
}

/* May @task use the colours of @group? Words if not. */
static int check(struct sol_group *group, struct task_struct *task)
{
	return check_both(group, task) ?: sol_member_check_nodes(group, task);
}

/* Move @task to @group, NULL: to none. -ESRCH: it exits. Not for a new task. */
static int move(struct task_struct *task, struct sol_group *group)
{
	if (group) {
		sol_group_get(group);
		WRITE_ONCE(group->had_tasks, true);
	}
	sol_member_put_id(sol_member_swap(task, group ? group->id : 0));
	if (!group || !(READ_ONCE(task->flags) & PF_EXITING))
		return 0;
	sol_member_put_id(sol_member_swap(task, 0));
	return -ESRCH;
}

/* After moves: bring the address spaces in line. May sleep. */
static void moved(struct task_struct **tasks, u32 n, struct sol_group *group)
{
	u32 i;

	for (i = 0; i < n; i++)
		sol_member_mark_mm(tasks[i], group ? group->id : 0);
	sol_stay_tasks(tasks, n);
}

/**
 * sol_member_assign() - put a thread into a group, or out of any, in any context
 * @task: not a new one: see sol_member_is_new()
 * @id: of the group, 0: none; the caller holds RCU's read lock
 *
 * sol_member_settle() must follow, where it may sleep.
 *
 * Return: false if the group is gone or the thread's cpuset has no node of it.
 */
bool sol_member_assign(struct task_struct *task, u16 id)
{
	struct sol_group *group = group_get_fast(id);

	if (task->flags & PF_KTHREAD)
		return true;
	if (id && (!group || READ_ONCE(group->dead) ||
		   !sol_member_may_allocate(group, task) ||
		   !atomic_inc_not_zero(&group->refs)))
		return false;
	if (id)
		WRITE_ONCE(group->had_tasks, true);
	sol_member_put_id(sol_member_swap(task, id));
	if (READ_ONCE(task->flags) & PF_EXITING)
		sol_member_put_id(sol_member_swap(task, 0));
	return true;
}

bool sol_member_assign_child(struct task_struct *child, u16 id,
			     unsigned long clone_flags)
{
	if (!sol_member_assign(child, id))
		return false;
	if (child->mm && !(clone_flags & CLONE_VM))
		sol_bits_swap(sol_mm_flags(child->mm), id);
	return true;
}

static bool wait_until_born(struct task_struct *task)
{
	int i;

	for (i = 0; sol_member_is_new(task) && i < SOL_NEW_TASK_TRIES; i++)
		usleep_range(500, 1000);
	return !sol_member_is_new(task);
}

static int refuse_exiting(const struct sol_group *group, struct task_struct *task)
{
	return sol_deny(-ESRCH, "%s: thread %d is exiting", group->name, task_pid_vnr(task));
}

static int refuse_unborn(const struct sol_group *group, struct task_struct *task)
{
	return sol_deny(-EAGAIN, "%s: thread %d is still being made", group->name,
			task_pid_vnr(task));
}

/* As sol_member_join(), but for the address space: moved() must follow. */
static int join(struct sol_group *group, struct task_struct *task)
{
	int err;

	if (!wait_until_born(task))
		return refuse_unborn(group, task);
	mutex_lock(&sol_group_mutex);
	err = check(group, task);
	if (!err) {
		err = move(task, group);
		if (err)
			refuse_exiting(group, task);
	}
	mutex_unlock(&sol_group_mutex);
	return err;
}

int sol_member_may_join(struct sol_group *group, struct task_struct *task)
{
	int err;

	if (!wait_until_born(task))
		return refuse_unborn(group, task);
	mutex_lock(&sol_group_mutex);
	err = check(group, task);
	mutex_unlock(&sol_group_mutex);
	if (!err && READ_ONCE(task->flags) & PF_EXITING)
		err = refuse_exiting(group, task);
	return err;
}

/**
 * sol_member_join() - put a thread into a group
 * @group: living, or -ENOENT
 * @task: the caller holds a reference, or it is current
 *
 * Return: 0; -EINVAL for a kernel thread or when its cpuset or memory policy
 * leaves no node of the group's colours; -ESRCH if it exits; -EAGAIN if its
 * fork takes very long. Words if refused.
 */
int sol_member_join(struct sol_group *group, struct task_struct *task)
{
	int err = join(group, task);

	if (!err)
		moved(&task, 1, group);
	return err;
}

/* At most @n outsiders among the threads of @process, each with a reference. */
static u32 outsiders(const struct sol_group *group, struct task_struct *process,
		     struct task_struct **tasks, u32 n)
{
	struct task_struct *task;
	u32 found = 0;

	rcu_read_lock();
	for_each_thread(process, task) {
		if (found == n)
			break;
		if (sol_member_is_outsider(group, task))
			tasks[found++] = get_task_struct(task);
	}
	rcu_read_unlock();
	return found;
}

int sol_member_may_join_process(struct sol_group *group, struct task_struct *process)
{
	struct task_struct *task;
	u32 n = outsiders(group, process, &task, 1);
	int err;

	if (n)
		put_task_struct(task);
	else if (process->flags & PF_EXITING)
		return sol_deny(-ESRCH, "%s: process %d is exiting",
				  group->name, task_tgid_vnr(process));
	mutex_lock(&sol_group_mutex);
	err = check_both(group, process) ?: sol_member_check_process(group, process);
	mutex_unlock(&sol_group_mutex);
	return err;
}

/* Puts the references of @tasks. Those that exit meanwhile are no failure. */
static int join_some(struct sol_group *group, struct task_struct **tasks, u32 n)
{
	int err = 0;
	u32 i, joined;

	for (joined = 0; joined < n && !err; joined++) {
		err = join(group, tasks[joined]);
		if (err == -ESRCH)
			err = 0;
	}
	moved(tasks, err ? joined - 1 : joined, group);
	for (i = 0; i < n; i++)
		put_task_struct(tasks[i]);
	return err;
}

/*
 * As sol_member_join(), for all threads of @process; new ones inherit. All are asked
 * before one moves. A process whose threads end as fast as they begin could keep a
 * writer here, who can be killed.
 */
int sol_member_join_process(struct sol_group *group,
			    struct task_struct *process)
{
	struct task_struct *tasks[AT_ONCE];
	int err = sol_member_may_join_process(group, process);
	u32 n;

	while (!err && (n = outsiders(group, process, tasks, AT_ONCE))) {
		err = join_some(group, tasks, n);
		if (!err && fatal_signal_pending(current))
			err = sol_deny(-EINTR, "%s: killed while threads of %d joined",
				       group->name, task_tgid_vnr(process));
		cond_resched();
	}
	return err;
}

void sol_member_leave(struct task_struct *task)
{
	move(task, NULL);
	moved(&task, 1, NULL);
}

int sol_member_join_exec(struct sol_group *group)
{
	int err;

	mutex_lock(&sol_group_mutex);
	err = check(group, current) ?: move(current, group);
	mutex_unlock(&sol_group_mutex);
	return err;
}

void sol_member_undo_exec(struct sol_group *before)
{
	mutex_lock(&sol_group_mutex);
	move(current, before && !before->dead ? before : NULL);
	mutex_unlock(&sol_group_mutex);
}

/*
 * A fork that lasts longer than we wait leaves its child in the group. The child is
 * not coloured, and keeps nothing but the group's memory.
 */
void sol_member_evict(struct sol_group *group)
{
	struct task_struct *tasks[AT_ONCE];
	bool fresh = true;
	int tries = 0;
	u32 n, i;

	while (atomic_read(&group->refs) > 1 && fresh &&
	       tries++ < SOL_NEW_TASK_TRIES) {
		while ((n = sol_member_some(group, tasks, AT_ONCE, &fresh))) {
			for (i = 0; i < n; i++) {
				if (group_id_of(tasks[i]) == group->id)
					sol_member_leave(tasks[i]);
				put_task_struct(tasks[i]);
			}
			cond_resched();
		}
		if (fresh)
			usleep_range(500, 1000);
	}
}
