// SPDX-License-Identifier: GPL-2.0
/*
 * Members: which task is in which group.
 *
 * The group's number stands in task->atomic_flags, so Linux itself copies it
 * to children and keeps it over exec, and whoever has to know all members of a
 * group looks at all tasks. Every task in a group holds a reference of it:
 * taken when it joins or is forked, given back when it leaves or exits, by
 * whoever takes the number out of the flags.
 *
 * A task that is being forked has its parent's flags of a moment ago, but no
 * reference: the parent may have moved since. Until it first runs it is in
 * TASK_NEW and nobody here touches it, except the probe of task_newtask, which
 * gives it the parent's group of *now*, with a reference. So a child never
 * runs with a number that was given to another group meanwhile.
 *
 * A task that exits sets PF_EXITING, then gives its number back; one who joins
 * it writes the number, then looks at PF_EXITING. One of the two sees the
 * other, so no reference is left behind.
 *
 * Locking: flags by cmpxchg. sol_group_mutex around checking and joining, so
 * that a group's colours don't change in between. Tasks by RCU.
 */
#include <linux/cpumask.h>
#include <linux/cpuset.h>
#include <linux/delay.h>
#include <linux/mempolicy.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include "group.h"
#include "member.h"
#include "../hook/probe.h"
#include "../command/status.h"
#include "space.h"

#define NEW_TASK_TRIES	200	/* milliseconds to wait for a fork's end */

/* ---- Flags ---- */

static unsigned long flag_of(u16 id)
{
	if (!id)
		return 0;
	return (unsigned long)sol_generation << SOL_FLAG_GEN_SHIFT |
	       (unsigned long)id << SOL_FLAG_ID_SHIFT;
}

static unsigned long flags_swap(unsigned long *flags, u16 id)
{
	unsigned long old = READ_ONCE(*flags);

	while (!try_cmpxchg(flags, &old, (old & ~SOL_FLAG_MASK) | flag_of(id)))
		;
	return old;
}

/* Write @id into @task's flags; returns the id that stood there. Full barrier. */
static u16 id_swap(struct task_struct *task, u16 id)
{
	unsigned long old = flags_swap(&task->atomic_flags, id);

	if ((u8)(old >> SOL_FLAG_GEN_SHIFT) != sol_generation)
		return 0;
	return old >> SOL_FLAG_ID_SHIFT;
}

/* Give back the reference that came with an id out of a task's flags. */
static void id_put(u16 id)
{
	struct sol_group *group = rcu_dereference_raw(sol_groups[id]);

	if (id && group)
		sol_group_put(group);
}

static bool is_new(struct task_struct *task)
{
	/* Pairs with the lock of wake_up_new_task(), after the probe below. */
	unsigned int state = smp_load_acquire(&task->__state);

	return state & TASK_NEW;
}

/* Faults by others in @task's memory go by the thread group leader's group. */
static void mm_mark(struct task_struct *task, u16 id)
{
	BUILD_BUG_ON(SOL_FLAG_ID_SHIFT != SOL_MM_ID_SHIFT);
	BUILD_BUG_ON(SOL_FLAG_GEN_SHIFT != SOL_MM_GEN_SHIFT);
	if (!thread_group_leader(task))
		return;
	task_lock(task);
	/* A child of vfork() still has its parent's memory. */
	if (task->mm && !task->vfork_done)
		flags_swap(sol_mm_flags(task->mm), id);
	task_unlock(task);
}

/* ---- Following tasks: probes, preemption off ---- */

/*
 * A fault of the kernel's own, writing a signal's frame after an interrupt, looks
 * like one of user mode to the fault path, and nobody comes for its bit.
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
		/* Removed: no more come, so that its members come to an end. */
		if (group && READ_ONCE(group->dead))
			group = NULL;
	} while (group && !atomic_inc_not_zero(&group->refs));
	if (!group)
		id = 0;
	/* Not id_swap(): nobody has counted what the child inherited. */
	flags_swap(&child->atomic_flags, id);
	if (id && child->mm && !(clone_flags & CLONE_VM))
		flags_swap(sol_mm_flags(child->mm), id);
	rcu_read_unlock();
}

static void probe_exec(void *data, struct task_struct *task, pid_t old_pid,
		       struct linux_binprm *bprm)
{
	u16 id = group_id_of(task);

	clear_failed(task);
	if (id && task->mm)
		flags_swap(sol_mm_flags(task->mm), id);
}

static void probe_exit(void *data, struct task_struct *task)
{
	if (task->atomic_flags & SOL_FLAG_MASK)
		id_put(id_swap(task, 0));
}

static struct sol_probe probes[] = {
	{ "task_newtask", probe_newtask },
	{ "sched_process_exec", probe_exec },
	{ "sched_process_exit", probe_exit },
};

/* ---- Joining and leaving ---- */

u64 sol_member_near(struct task_struct *task)
{
	u64 nodes = 0;
	int cpu, node;

	for_each_cpu(cpu, &task->cpus_mask) {
		node = cpu_to_node(cpu);
		if (node >= 0 && node < SOL_MAX_NODES)
			nodes |= BIT_ULL(node);
	}
	return nodes;
}

u64 sol_member_nodes(struct task_struct *task)
{
	nodemask_t mask = NODE_MASK_ALL;
	u64 nodes = 0;
	int node;

	task_lock(task);
#ifdef CONFIG_CPUSETS
	mask = task->mems_allowed;
#endif
#ifdef CONFIG_NUMA
	if (task->mempolicy && task->mempolicy->mode == MPOL_BIND)
		nodes_and(mask, mask, task->mempolicy->nodes);
#endif
	task_unlock(task);
	for (node = 0; node < min(SOL_MAX_NODES, MAX_NUMNODES); node++)
		if (node_isset(node, mask))
			nodes |= BIT_ULL(node);
	return nodes;
}

static u64 cells_nodes(const struct sol_cells *cells)
{
	u64 nodes = 0;
	int i;

	for (i = 0; i < SOL_MAX_NODES; i++)
		if (cells->first[i] < cells->first[i + 1])
			nodes |= BIT_ULL(i);
	return nodes;
}

static int refuse_nodes(const struct sol_group *group, pid_t tid, u64 allowed,
			u64 colored)
{
	unsigned long bits[SOL_LONGS(64)];
	char a[64], c[64];

	bitmap_from_u64(bits, allowed);
	sol_list_print(bits, 64, a, sizeof(a));
	bitmap_from_u64(bits, colored);
	sol_list_print(bits, 64, c, sizeof(c));
	return sol_deny(-EINVAL,
		"%s: cpuset.mems and memory policy let thread %d allocate on nodes %s, the group's colours are on %s",
		group->name, tid, a, c);
}

/* May @task use the colours of @group? Words if not. */
static int check(struct sol_group *group, struct task_struct *task)
{
	pid_t tid = task_pid_vnr(task);
	struct sol_cells *cells;
	u64 allowed, colored;

	lockdep_assert_held(&sol_group_mutex);
	if (group->dead)
		return sol_deny(-ENOENT, "%s: the group was removed",
				  group->name);
	if (task->flags & PF_KTHREAD)
		return sol_deny(-EINVAL,
			"%s: %d is a kernel thread, it has no memory to colour",
			group->name, tid);
	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	if (!cells)
		return 0;
	allowed = sol_member_nodes(task);
	colored = cells_nodes(cells);
	if (allowed & colored)
		return 0;
	return refuse_nodes(group, tid, allowed, colored);
}

int sol_member_check_all(struct sol_group *group, const struct sol_cells *cells)
{
	struct task_struct *process, *task;
	u64 colored, allowed = 0;
	pid_t tid = 0;

	if (!cells || atomic_read(&group->refs) <= 1)
		return 0;
	colored = cells_nodes(cells);
	rcu_read_lock();
	for_each_process_thread(process, task) {
		if (group_id_of(task) != group->id)
			continue;
		allowed = sol_member_nodes(task);
		if (!(allowed & colored)) {
			tid = task_pid_vnr(task);
			goto out;
		}
	}
out:
	rcu_read_unlock();
	return tid ? refuse_nodes(group, tid, allowed, colored) : 0;
}

/* @group NULL: out of its group. -ESRCH: it exits. Not for a new task. */
static int move(struct task_struct *task, struct sol_group *group)
{
	if (group) {
		sol_group_get(group);
		WRITE_ONCE(group->peopled, true);
	}
	id_put(id_swap(task, group ? group->id : 0));
	if (!group || !(READ_ONCE(task->flags) & PF_EXITING))
		return 0;
	id_put(id_swap(task, 0));
	return -ESRCH;
}

/* After a move: the address space, too. May sleep. */
static void moved(struct task_struct *task, struct sol_group *group)
{
	mm_mark(task, group ? group->id : 0);
	sol_stay_task(task);
}

/* A look without locks: tracepoints can take none. */
static bool may_allocate(const struct sol_group *group,
			 struct task_struct *task)
{
	const struct sol_cells *cells = rcu_dereference(group->cells);
	u64 colored = cells ? cells_nodes(cells) : 0;
	int node;

	for (node = 0; node < min(SOL_MAX_NODES, MAX_NUMNODES); node++) {
#ifdef CONFIG_CPUSETS
		if (!node_isset(node, task->mems_allowed))
			continue;
#endif
		if (colored & BIT_ULL(node))
			return true;
	}
	return !colored;
}

/**
 * sol_member_assign() - put a thread into a group, or out of any, in any context
 * @task: its number is its own: see sol_member_is_new()
 * @id: of the group, 0: none. RCU keeps it
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
		   !may_allocate(group, task) ||
		   !atomic_inc_not_zero(&group->refs)))
		return false;
	if (id)
		WRITE_ONCE(group->peopled, true);
	id_put(id_swap(task, id));
	if (READ_ONCE(task->flags) & PF_EXITING)
		id_put(id_swap(task, 0));
	return true;
}

bool sol_member_is_new(struct task_struct *task)
{
	return is_new(task);
}

/* A child, by a probe of task_newtask that comes after ours; its memory, too. */
bool sol_member_assign_child(struct task_struct *child, u16 id,
			     unsigned long clone_flags)
{
	if (!sol_member_assign(child, id))
		return false;
	if (child->mm && !(clone_flags & CLONE_VM))
		flags_swap(sol_mm_flags(child->mm), id);
	return true;
}

static bool wait_until_born(struct task_struct *task)
{
	int i;

	for (i = 0; is_new(task) && i < NEW_TASK_TRIES; i++)
		usleep_range(500, 1000);
	return !is_new(task);
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
	int err;

	if (!wait_until_born(task))
		return sol_deny(-EAGAIN, "%s: thread %d is still being made",
				  group->name, task_pid_vnr(task));
	mutex_lock(&sol_group_mutex);
	err = check(group, task);
	if (!err) {
		err = move(task, group);
		if (err)
			sol_deny(err, "%s: thread %d is exiting", group->name,
				   task_pid_vnr(task));
	}
	mutex_unlock(&sol_group_mutex);
	if (!err)
		moved(task, group);
	return err;
}

/* A thread of @process that is not in @group and does not exit; or NULL. */
static struct task_struct *outsider(struct sol_group *group,
				    struct task_struct *process)
{
	struct task_struct *task, *found = NULL;

	rcu_read_lock();
	for_each_thread(process, task) {
		if (group_id_of(task) == group->id ||
		    READ_ONCE(task->flags) & PF_EXITING)
			continue;
		found = get_task_struct(task);
		break;
	}
	rcu_read_unlock();
	return found;
}

/* As sol_member_join(), all threads of @process; those to come inherit. */
int sol_member_join_process(struct sol_group *group,
			    struct task_struct *process)
{
	struct task_struct *task;
	int err = 0;

	if (process->flags & PF_EXITING && !outsider(group, process))
		return sol_deny(-ESRCH, "%s: process %d is exiting",
				  group->name, task_tgid_vnr(process));
	while (!err) {
		task = outsider(group, process);
		if (!task)
			return 0;
		err = sol_member_join(group, task);
		if (err == -ESRCH)
			err = 0;
		put_task_struct(task);
		cond_resched();
	}
	return err;
}

void sol_member_leave(struct task_struct *task)
{
	move(task, NULL);
	moved(task, NULL);
}

int sol_member_join_exec(struct sol_group *group)
{
	int err;

	mutex_lock(&sol_group_mutex);
	err = check(group, current) ?: move(current, group);
	mutex_unlock(&sol_group_mutex);
	return err;
}

/* execve() failed: back to @before (referenced, or NULL). */
void sol_member_undo_exec(struct sol_group *before)
{
	mutex_lock(&sol_group_mutex);
	move(current, before && !before->dead ? before : NULL);
	mutex_unlock(&sol_group_mutex);
}

/**
 * sol_member_gather() - tasks that a test picks
 * @pick: under RCU
 * @arg: for @pick
 * @n: how many there are
 *
 * Return: the tasks, each with a reference; to be kvfree()d. NULL: none, or no
 * memory.
 */
struct task_struct **sol_member_gather(bool (*pick)(struct task_struct *task,
						    void *arg),
				       void *arg, u32 *n)
{
	struct task_struct *process, *task, **tasks;
	u32 room = 0;

	*n = 0;
	rcu_read_lock();
	for_each_process_thread(process, task)
		room++;
	rcu_read_unlock();
	room += room / 4 + 64;
	tasks = kvcalloc(room, sizeof(*tasks), GFP_KERNEL);
	if (!tasks)
		return NULL;
	rcu_read_lock();
	for_each_process_thread(process, task)
		if (*n < room && !(task->flags & PF_KTHREAD) && pick(task, arg))
			tasks[(*n)++] = get_task_struct(task);
	rcu_read_unlock();
	return tasks;
}

/* Does the address space of a process say other than its threads? */
static bool unsettled(struct task_struct *task, void *arg)
{
	bool is = false;
	u16 id;

	if (!thread_group_leader(task))
		return false;
	id = group_id_of(task);
	task_lock(task);
	if (task->mm && !task->vfork_done)
		is = group_id_of_mm(task->mm) != id ||
		     sol_mm_stays(task->mm) != !!id;
	task_unlock(task);
	return is;
}

/* After sol_member_assign(): the address spaces too. May sleep. */
void sol_member_settle(void)
{
	struct task_struct **tasks;
	u32 n, i;

	tasks = sol_member_gather(unsettled, NULL, &n);
	for (i = 0; i < n; i++) {
		mm_mark(tasks[i], group_id_of(tasks[i]));
		sol_stay_task(tasks[i]);
		put_task_struct(tasks[i]);
	}
	kvfree(tasks);
}

/* All members of @group at this moment, referenced, into @tasks[n]. */
static int members(const struct sol_group *group, struct task_struct **tasks,
		   int n)
{
	struct task_struct *process, *task;
	int found = 0;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (group_id_of(task) == group->id && found < n)
			tasks[found++] = get_task_struct(task);
	rcu_read_unlock();
	return found;
}

void sol_member_stay_all(struct sol_group *group)
{
	int n = atomic_read(&group->refs);
	struct task_struct **tasks = kvcalloc(n, sizeof(*tasks), GFP_KERNEL);

	n = tasks ? members(group, tasks, n) : 0;
	while (n-- > 0) {
		sol_stay_task(tasks[n]);
		put_task_struct(tasks[n]);
	}
	kvfree(tasks);
}

/* A member of @group, with a reference; *@fresh: some are being forked. */
static struct task_struct *member(const struct sol_group *group, bool *fresh)
{
	struct task_struct *process, *task, *found = NULL;

	*fresh = false;
	rcu_read_lock();
	for_each_process_thread(process, task) {
		if (group_id_of(task) != group->id)
			continue;
		if (is_new(task)) {
			*fresh = true;
			continue;
		}
		found = get_task_struct(task);
		goto out;
	}
out:
	rcu_read_unlock();
	return found;
}

/*
 * Move all tasks out of @group, which is dead. A fork that outlasts our
 * patience leaves its child in: uncoloured, and it keeps nothing but memory.
 */
void sol_member_evict(struct sol_group *group)
{
	struct task_struct *task;
	bool fresh = true;
	int tries = 0;

	while (atomic_read(&group->refs) > 1 && fresh &&
	       tries++ < NEW_TASK_TRIES) {
		while ((task = member(group, &fresh))) {
			sol_member_leave(task);
			put_task_struct(task);
			cond_resched();
		}
		if (fresh)
			usleep_range(500, 1000);
	}
}

/* ---- Reading ---- */

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
		if (!is_new(task)) {
			id_put(id_swap(task, 0));
			mm_mark(task, 0);
		}
		any = true;
	}
	rcu_read_unlock();
	return any;
}

int sol_member_init(void)
{
	unflag_all();
	return sol_probes_add(probes, ARRAY_SIZE(probes));
}

void sol_member_exit(void)
{
	int i;

	for (i = 0; unflag_all() && i < NEW_TASK_TRIES; i++)
		usleep_range(500, 1000);
	sol_probes_remove(probes, ARRAY_SIZE(probes));
}
