// SPDX-License-Identifier: GPL-2.0
/*
 * Members: which task is in which group.
 *
 * The number of a task's group stands in task->atomic_flags. Linux copies these flags
 * to children and keeps them over exec. All members of a group are found by a look at
 * all tasks. Every task in a group holds a reference of it, taken when the task
 * joins or is forked. The one who takes the number out of the flags gives the
 * reference back.
 *
 * A task that is being forked has the flags that its parent had a moment ago, but no
 * reference, and the parent may have moved since. Until it first runs it is in
 * TASK_NEW, and only the probe of task_newtask touches it: it gives the child the
 * parent's present group, with a reference. So a child never runs with a number that
 * another group got meanwhile.
 *
 * Locking: flags change by cmpxchg. Tasks are found under RCU.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/moduleparam.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "../hook/probe.h"
#include "group.h"
#include "member.h"
#include "space.h"
#include "tasks.h"

static u8 generation;
module_param(generation, byte, 0400);
MODULE_PARM_DESC(generation, "for tests: the generation that is tried first; 0: any");

/* ---- Flags ---- */

static unsigned long flag_of(u16 id)
{
	if (!id)
		return 0;
	return (unsigned long)sol_generation << SOL_FLAG_GEN_SHIFT |
	       (unsigned long)id << SOL_FLAG_ID_SHIFT;
}

unsigned long sol_bits_swap(unsigned long *flags, u16 id)
{
	unsigned long old = READ_ONCE(*flags);

	while (!try_cmpxchg(flags, &old, (old & ~SOL_FLAG_MASK) | flag_of(id)))
		;
	return old;
}

/* Write @id into @task's flags; returns the id that stood there. Full barrier. */
u16 sol_member_swap(struct task_struct *task, u16 id)
{
	unsigned long old = sol_bits_swap(&task->atomic_flags, id);

	if ((u8)(old >> SOL_FLAG_GEN_SHIFT) != sol_generation)
		return 0;
	return old >> SOL_FLAG_ID_SHIFT;
}

void sol_member_put_id(u16 id)
{
	struct sol_group *group = rcu_dereference_raw(sol_groups[id]);

	if (id && group)
		sol_group_put(group);
}

bool sol_member_is_new(struct task_struct *task)
{
	/* Pairs with the lock of wake_up_new_task(), after the probe below. */
	unsigned int state = smp_load_acquire(&task->__state);

	return state & TASK_NEW;
}

/* Faults of other tasks in a process' memory use this thread's group. */
struct task_struct *sol_member_speaker(struct task_struct *task)
{
	struct task_struct *thread;

	for_each_thread(task, thread)
		if (!(READ_ONCE(thread->flags) & PF_EXITING))
			return thread;
	return NULL;
}

static bool speaks(struct task_struct *task)
{
	bool does;

	rcu_read_lock();
	does = sol_member_speaker(task) == task;
	rcu_read_unlock();
	return does;
}

static void mark_mm(struct task_struct *task, u16 id)
{
	BUILD_BUG_ON(SOL_FLAG_ID_SHIFT != SOL_MM_ID_SHIFT);
	BUILD_BUG_ON(SOL_FLAG_GEN_SHIFT != SOL_MM_GEN_SHIFT);
	task_lock(task);
	/* A child of vfork() still has its parent's memory. */
	if (task->mm && !task->vfork_done)
		sol_bits_swap(sol_mm_flags(task->mm), id);
	task_unlock(task);
}

void sol_member_mark_mm(struct task_struct *task, u16 id)
{
	if (speaks(task))
		mark_mm(task, id);
}

/* ---- Following tasks: probes, preemption off ---- */

/*
 * When the kernel writes a signal's frame after an interrupt, its fault looks like one
 * of user mode to the fault path, and nobody clears its bit.
 */
static void clear_failed(struct task_struct *task)
{
	if (test_bit(SOL_TASK_FAILED, &task->atomic_flags))
		clear_bit(SOL_TASK_FAILED, &task->atomic_flags);
}

static void probe_newtask(void *data, struct task_struct *child,
			  unsigned long clone_flags)
{
	struct sol_group *group;
	u16 id;

	/* A plain task must cost next to nothing here. */
	if (!((child->atomic_flags | current->atomic_flags) &
	      (SOL_FLAG_MASK | BIT(SOL_TASK_FAILED))))
		return;
	clear_failed(child);
	rcu_read_lock();
	do {
		id = group_id_of(current);
		group = group_get_fast(id);
		/* A removed group gets no more members. */
		if (group && READ_ONCE(group->dead))
			group = NULL;
	} while (group && !atomic_inc_not_zero(&group->refs));
	if (!group)
		id = 0;
	/* The bits that go are copies of the parent's: the child holds no reference to put. */
	sol_bits_swap(&child->atomic_flags, id);
	if (id && child->mm && !(clone_flags & CLONE_VM))
		sol_bits_swap(sol_mm_flags(child->mm), id);
	rcu_read_unlock();
}

static void member_exec(void *data, struct task_struct *task, pid_t old_pid,
		       struct linux_binprm *bprm)
{
	u16 id = group_id_of(task);

	clear_failed(task);
	if (id && task->mm)
		sol_bits_swap(sol_mm_flags(task->mm), id);
}

static void probe_exit(void *data, struct task_struct *task)
{
	if (task->atomic_flags & SOL_FLAG_MASK)
		sol_member_put_id(sol_member_swap(task, 0));
}

static struct sol_probe probes[] = {
	{ "task_newtask", probe_newtask },
	{ "sched_process_exec", member_exec },
	{ "sched_process_exit", probe_exit },
};

/* ---- Finding tasks ---- */

u32 sol_member_some(const struct sol_group *group, struct task_struct **tasks,
		    u32 n, bool *fresh)
{
	struct task_struct *process, *task;
	u32 found = 0;

	*fresh = false;
	rcu_read_lock();
	for_each_process_thread(process, task) {
		if (group_id_of(task) != group->id)
			continue;
		if (found == n)
			goto out;
		if (sol_member_is_new(task))
			*fresh = true;
		else
			tasks[found++] = get_task_struct(task);
	}
out:
	rcu_read_unlock();
	return found;
}

bool sol_member_is_outsider(const struct sol_group *group,
			    const struct task_struct *task)
{
	return group_id_of(task) != group->id &&
	       !(READ_ONCE(task->flags) & PF_EXITING);
}

struct sol_group *sol_member_group(struct task_struct *task)
{
	struct sol_group *group;

	rcu_read_lock();
	do {
		group = group_get_fast(group_id_of(task));
	} while (group && !atomic_inc_not_zero(&group->refs));
	rcu_read_unlock();
	return group;
}

/**
 * sol_member_list() - thread ids, one a line
 * @group: whose
 * @buf: NULL: only count
 * @size: of @buf; ids that don't fit are left out, whole
 *
 * Return: the bytes that the whole list takes, at this moment.
 */
size_t sol_member_list(const struct sol_group *group, char *buf, size_t size)
{
	struct task_struct *process, *task;
	size_t need = 0, len;
	char line[16];

	rcu_read_lock();
	for_each_process_thread(process, task) {
		pid_t tid;

		if (group_id_of(task) != group->id)
			continue;
		tid = task_pid_vnr(task);
		if (!tid)	/* of another pid namespace, or gone */
			continue;
		len = scnprintf(line, sizeof(line), "%d\n", tid);
		if (buf && need + len <= size)
			memcpy(buf + need, line, len);
		need += len;
	}
	rcu_read_unlock();
	return need;
}

/* ---- Address spaces ---- */

/* Do the flags of an address space differ from those of @task, which speaks for it? */
static bool unsettled(struct task_struct *task)
{
	u16 id = group_id_of(task);
	bool is = false;

	task_lock(task);
	if (task->mm && !task->vfork_done)
		is = group_id_of_mm(task->mm) != id ||
		     sol_mm_stays(task->mm) != sol_group_has_colors(id);
	task_unlock(task);
	return is;
}

/*
 * Mark the address space of @task's process anew. Who speaks may have ended since a thread of
 * it changed its group. Return: who does, referenced; NULL: nothing has to change.
 */
static struct task_struct *mark_anew(struct task_struct *task)
{
	struct task_struct *speaker;

	rcu_read_lock();
	speaker = sol_member_speaker(task);
	if (speaker)
		get_task_struct(speaker);
	rcu_read_unlock();
	if (!speaker)
		return NULL;
	if (unsettled(speaker)) {
		mark_mm(speaker, group_id_of(speaker));
		return speaker;
	}
	put_task_struct(speaker);
	return NULL;
}

void sol_member_settle(struct task_struct *task)
{
	struct task_struct *speaker = mark_anew(task);

	if (!speaker)
		return;
	sol_stay_task(speaker);
	put_task_struct(speaker);
}

/*
 * The threads of a process come one after the other, so the first that lives is the one
 * that speaks. To ask sol_member_speaker() for each would take threads times threads.
 */
static bool speaks_unsettled(struct task_struct *task, void *arg)
{
	struct signal_struct **last = arg;

	if (task->signal == *last || READ_ONCE(task->flags) & PF_EXITING)
		return false;
	*last = task->signal;
	return unsettled(task);
}

int sol_member_settle_all(void)
{
	struct sol_tasks *tasks = sol_tasks_new_for_all();
	struct signal_struct *last = NULL;
	struct task_struct *speaker;
	u32 i, n = 0;

	if (!tasks)
		return -ENOMEM;
	sol_tasks_find(tasks, speaks_unsettled, &last);
	for (i = 0; i < tasks->n; i++) {
		speaker = mark_anew(tasks->task[i]);
		put_task_struct(tasks->task[i]);
		if (speaker)
			tasks->task[n++] = speaker;
		cond_resched();
	}
	tasks->n = n;
	sol_stay_tasks(tasks->task, n);
	sol_tasks_free(tasks);
	return 0;
}

bool sol_member_is_in(struct task_struct *task, void *group)
{
	return group_id_of(task) == ((struct sol_group *)group)->id;
}

bool sol_member_is_alone(const struct sol_group *group)
{
	return group_id_of(current) == group->id && sol_group_tasks(group) == 1;
}

void sol_member_stay_all(struct sol_group *group, struct sol_tasks *tasks)
{
	if (!sol_group_tasks(group))
		return;
	if (sol_member_is_alone(group)) {
		sol_stay_task(current);
		return;
	}
	sol_tasks_find(tasks, sol_member_is_in, group);
	sol_stay_tasks(tasks->task, tasks->n);
	sol_tasks_put(tasks);
}

/* ---- Load and unload ---- */

static bool unflag_all(void)
{
	struct task_struct *process, *task;
	bool any = false;

	rcu_read_lock();
	for_each_process_thread(process, task) {
		clear_failed(task);
		if (!(READ_ONCE(task->atomic_flags) & SOL_FLAG_MASK))
			continue;
		if (!sol_member_is_new(task)) {
			sol_member_put_id(sol_member_swap(task, 0));
			mark_mm(task, 0);
		}
		any = true;
	}
	rcu_read_unlock();
	return any;
}

static void note_generations(unsigned long *used)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task) {
		__set_bit((u8)(READ_ONCE(task->atomic_flags) >> SOL_FLAG_GEN_SHIFT), used);
		task_lock(task);
		if (task->mm)
			__set_bit((u8)(READ_ONCE(*sol_mm_flags(task->mm)) >> SOL_MM_GEN_SHIFT),
				  used);
		task_unlock(task);
	}
	rcu_read_unlock();
}

/*
 * A task that is still being forked has the flags of the load that it began in: any user may
 * have some for as long as they like (control/newborn.c). No generation of theirs will do, nor 0.
 * Return: one that will; 0: there is none.
 */
static u8 free_generation(void)
{
	DECLARE_BITMAP(used, U8_MAX + 1) = { 1 };
	u8 candidate = generation ?: get_random_u8();
	int i;

	note_generations(used);
	for (i = 0; i <= U8_MAX; i++, candidate++)
		if (!test_bit(candidate, used))
			return candidate;
	return 0;
}

/* The probes first: who is forked from now on has flags of this load, or none. */
int sol_member_init(void)
{
	int err = sol_probes_add(probes, ARRAY_SIZE(probes));

	if (err)
		return err;
	unflag_all();
	sol_generation = free_generation();
	if (sol_generation)
		return 0;
	pr_err("forks that began in %u earlier loads do not end; end these processes\n", U8_MAX);
	sol_probes_remove(probes, ARRAY_SIZE(probes));
	return -EBUSY;
}

void sol_member_exit(void)
{
	int i;

	for (i = 0; unflag_all() && i < SOL_NEW_TASK_TRIES; i++)
		usleep_range(500, 1000);
	sol_probes_remove(probes, ARRAY_SIZE(probes));
}
