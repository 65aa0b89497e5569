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

#include <linux/types.h>

struct sol_cells;
struct sol_group;
struct task_struct;

/* ---- Joining and leaving ---- */

int sol_member_join(struct sol_group *group, struct task_struct *task);
int sol_member_join_process(struct sol_group *group, struct task_struct *task);
void sol_member_leave(struct task_struct *task);

/**
 * sol_member_join_exec() - the current task, in the middle of execve(), joins
 * @group: living, or -ENOENT
 *
 * The old address space is not touched. Return: as sol_member_join().
 */
int sol_member_join_exec(struct sol_group *group);

/* Its execve() failed: it goes back to @before, which is referenced, or NULL. */
void sol_member_undo_exec(struct sol_group *before);

/* Move all tasks out of @group, which was removed. */
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

/* Is @task being forked? Then only probes of task_newtask may touch it. */
bool sol_member_is_new(struct task_struct *task);

/* Bring the address space that @task leads in line with what sol_member_assign() did,
 * or that of every process. Sleep.
 */
void sol_member_settle(struct task_struct *task);
void sol_member_settle_all(void);

/* ---- Finding members ---- */

struct task_struct **sol_member_gather(bool (*pick)(struct task_struct *task,
						    void *arg),
				       void *arg, u32 *n);

/* The group of @task with a reference, or NULL. Any context. */
struct sol_group *sol_member_group(struct task_struct *task);

size_t sol_member_list(const struct sol_group *group, char *buf, size_t size);

/* sol_stay_task() for all tasks of @group. */
void sol_member_stay_all(struct sol_group *group);

/* ---- Nodes, as bitmaps ---- */

/* Nodes of the CPUs that @task may run on. Any context. */
u64 sol_member_near(struct task_struct *task);

/* Nodes that @task may allocate on: its cpuset and memory policy. */
u64 sol_member_nodes(struct task_struct *task);

/**
 * sol_member_check_all() - may all tasks of a group use its new cells?
 * @group: sol_group_mutex is held
 * @cells: NULL: it will not colour, so that all may
 *
 * Return: 0; -EINVAL and words: a task may use no node of @cells.
 */
int sol_member_check_all(struct sol_group *group, const struct sol_cells *cells);

/* ---- Between these files ---- */

#define SOL_NEW_TASK_TRIES	200	/* milliseconds to wait for a fork's end */

/* Write group @id into *@flags. Return: the flags before. Full barrier. */
unsigned long sol_bits_swap(unsigned long *flags, u16 id);

/* Write group @id into @task's flags. Return: the id that stood there. */
u16 sol_member_swap(struct task_struct *task, u16 id);

/* Give back the reference that came with an id out of a task's flags. */
void sol_member_put_id(u16 id);

/* The address space of @task belongs to group @id, if @task leads its threads. */
void sol_member_mark_mm(struct task_struct *task, u16 id);

/* A member of @group, with a reference, or NULL; *@fresh: some are being forked. */
struct task_struct *sol_member_any(const struct sol_group *group, bool *fresh);

/* Refuse, with words, if @task may use no node of @group's colours. */
int sol_member_check_nodes(struct sol_group *group, struct task_struct *task);

/* The same without locks, for tracepoints. RCU. */
bool sol_member_may_allocate(const struct sol_group *group,
			     struct task_struct *task);

/* ---- Load and unload ---- */

int sol_member_init(void);
void sol_member_exit(void);

#endif /* SOLOIST_MEMBER_H */
