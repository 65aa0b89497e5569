/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tasks in groups.
 *
 *   member.c   which task is in which group: inheriting, finding members
 *   join.c     joining and leaving
 *   nodes.c    nodes on which a task may allocate
 *
 * All may sleep unless it says otherwise. A function that refuses leaves the
 * reason in last_cmd_status.
 */
#ifndef SOLOIST_MEMBER_H
#define SOLOIST_MEMBER_H

#include <linux/nodemask.h>
#include <linux/types.h>

struct sol_cells;
struct sol_group;
struct sol_tasks;
struct task_struct;

/* ---- Joining and leaving ---- */

int sol_member_join(struct sol_group *group, struct task_struct *task);
int sol_member_join_process(struct sol_group *group, struct task_struct *task);
void sol_member_leave(struct task_struct *task);

/* Would these be refused now? Return: as they do; nobody moves. */
int sol_member_may_join(struct sol_group *group, struct task_struct *task);
int sol_member_may_join_process(struct sol_group *group, struct task_struct *process);

/**
 * sol_member_join_exec() - the current task, in the middle of execve(), joins
 * @group: living, or -ENOENT
 *
 * The old address space is not touched. Return: as sol_member_join().
 */
int sol_member_join_exec(struct sol_group *group);

/**
 * sol_member_undo_exec() - after sol_member_join_exec(): the execve() failed
 * @before: the group that the current task goes back to, referenced; NULL: none
 */
void sol_member_undo_exec(struct sol_group *before);

/**
 * sol_member_evict() - move all tasks out of a group
 * @group: that was removed: none joins any more
 *
 * Waits at most SOL_NEW_TASK_TRIES ms for children that are being forked.
 */
void sol_member_evict(struct sol_group *group);

/* ---- The same from tracepoints, which may not sleep; for rule/cgroup.c ---- */

bool sol_member_assign(struct task_struct *task, u16 id);

/**
 * sol_member_assign_child() - put a child and its memory into a group
 * @child: of the current task, in a probe of task_newtask that runs after ours
 * @id: of the group, 0: none
 * @clone_flags: of the fork
 *
 * Return: as sol_member_assign().
 */
bool sol_member_assign_child(struct task_struct *child, u16 id,
			     unsigned long clone_flags);

/**
 * sol_member_is_new() - is a task being forked? Any context
 * @task: referenced, or under RCU
 *
 * Then only probes of task_newtask may touch it.
 *
 * Return: it is.
 */
bool sol_member_is_new(struct task_struct *task);

/**
 * sol_member_speaker() - the thread whose group is its process' memory's; under RCU
 * @task: a thread of the process, referenced or under RCU
 *
 * Return: the thread group leader, or the first that lives after it; NULL: all end.
 */
struct task_struct *sol_member_speaker(struct task_struct *task);

/**
 * sol_member_settle() - bring an address space in line with sol_member_assign()
 * @task: a thread of the process; referenced
 */
void sol_member_settle(struct task_struct *task);

/**
 * sol_member_settle_all() - sol_member_settle() for every process
 *
 * Return: 0; -ENOMEM: for none.
 */
int sol_member_settle_all(void);

/* ---- Finding members ---- */

/* Is @task in @group, a struct sol_group? For sol_tasks_find(). */
bool sol_member_is_in(struct task_struct *task, void *group);

/**
 * sol_member_group() - the group of a task; any context
 * @task: referenced, or current
 *
 * Return: the group with a reference; NULL: none.
 */
struct sol_group *sol_member_group(struct task_struct *task);

size_t sol_member_list(const struct sol_group *group, char *buf, size_t size);

/* Is the current task the only one in @group, to which the caller has another reference? */
bool sol_member_is_alone(const struct sol_group *group);

/**
 * sol_member_stay_all() - sol_stay_tasks() for all tasks of a group
 * @group: referenced by the caller
 * @tasks: none; room for them
 */
void sol_member_stay_all(struct sol_group *group, struct sol_tasks *tasks);

/* ---- Nodes, as bitmaps ---- */

/**
 * sol_member_near() - nodes of the CPUs that a task may run on; any context
 * @task: referenced, or under RCU
 *
 * For one without memory the nearest that has some.
 *
 * Return: a bit for each node below SOL_MAX_NODES.
 */
u64 sol_member_near(struct task_struct *task);

/**
 * sol_member_nodes() - nodes that a task may allocate on: its cpuset and memory policy
 * @task: referenced, or under RCU
 *
 * Return: a bit for each node below SOL_MAX_NODES.
 */
u64 sol_member_nodes(struct task_struct *task);
/* The same, as the kernel has them. */
nodemask_t sol_member_nodemask(struct task_struct *task);

/**
 * sol_member_check_all() - may all tasks of a group use its new cells?
 * @group: sol_group_mutex is held; if the current task is in it, the caller has a reference
 *	beside that of the task
 * @cells: NULL: it will not colour, so that all may
 *
 * Return: 0; -EINVAL and words: a task may use no node of @cells, which lack one of before.
 */
int sol_member_check_all(struct sol_group *group, const struct sol_cells *cells);

/* ---- Between these files ---- */

#define SOL_NEW_TASK_TRIES	200	/* milliseconds to wait for a fork's end */

/**
 * sol_bits_swap() - write a group's number into flags; any context, a full barrier
 * @flags: of a task or an address space
 * @id: of the group, 0: none
 *
 * Return: the flags before.
 */
unsigned long sol_bits_swap(unsigned long *flags, u16 id);

/**
 * sol_member_swap() - write a group's number into a task's flags; any context, a full
 * barrier
 * @task: referenced, or under RCU
 * @id: of the group, which has a reference for it; 0: none
 *
 * Return: the number that stood there, whose reference is the caller's; 0: none.
 */
u16 sol_member_swap(struct task_struct *task, u16 id);

/**
 * sol_member_put_id() - give back the reference of a number; any context
 * @id: out of a task's flags, 0: none
 */
void sol_member_put_id(u16 id);

/**
 * sol_member_mark_mm() - the address space of a process belongs to a group
 * @task: that speaks for it; of another nothing is done
 * @id: of the group, 0: none
 */
void sol_member_mark_mm(struct task_struct *task, u16 id);

/**
 * sol_member_some() - members of a group
 * @group: the group
 * @tasks: gets them, each with a reference
 * @n: how many at most
 * @fresh: becomes true if a member is being forked, and such are left out
 *
 * Return: how many. Of 0, @fresh is of all members.
 */
u32 sol_member_some(const struct sol_group *group, struct task_struct **tasks,
		    u32 n, bool *fresh);

/**
 * sol_member_check_nodes() - may a task use a node of a group's colours?
 * @group: sol_group_mutex is held
 * @task: referenced, or current
 *
 * Return: 0; -EINVAL and words: it may not.
 */
int sol_member_check_nodes(struct sol_group *group, struct task_struct *task);

/**
 * sol_member_check_process() - the same of all threads that are not in the group yet
 * @group: sol_group_mutex is held
 * @process: referenced
 *
 * Return: 0; -EINVAL and words: one of them may not.
 */
int sol_member_check_process(struct sol_group *group, struct task_struct *process);

/**
 * sol_member_is_outsider() - would a task change its group by joining? Under RCU
 * @group: the group
 * @task: the task
 *
 * Return: it is in another or in none, and does not exit.
 */
bool sol_member_is_outsider(const struct sol_group *group,
			    const struct task_struct *task);

/**
 * sol_member_may_allocate() - the same without locks, under RCU; any context
 * @group: the group
 * @task: the task
 *
 * Return: it may.
 */
bool sol_member_may_allocate(const struct sol_group *group,
			     struct task_struct *task);

/* ---- Load and unload ---- */

/**
 * sol_member_init() - void the flags of earlier loads, follow forks, exits and execs
 *
 * Return: 0, or an errno; the kernel log says why.
 */
int sol_member_init(void);

/**
 * sol_member_exit() - let go of all tasks, and follow none any more
 */
void sol_member_exit(void);

#endif /* SOLOIST_MEMBER_H */
