/* SPDX-License-Identifier: GPL-2.0 */
/* Tasks in groups: joining, inheriting, leaving. */
#ifndef SOLOIST_MEMBER_H
#define SOLOIST_MEMBER_H

#include <linux/types.h>

struct sol_cells;
struct sol_group;
struct task_struct;

int sol_member_init(void);
void sol_member_exit(void);

int sol_member_join(struct sol_group *group, struct task_struct *task);
int sol_member_join_process(struct sol_group *group, struct task_struct *task);
void sol_member_leave(struct task_struct *task);

/* For a task in the middle of execve(): its old address space is not touched. */
int sol_member_join_exec(struct sol_group *group);
void sol_member_undo_exec(struct sol_group *before);

/* For rule/cgroup.c: see there and in member.c. */
bool sol_member_assign(struct task_struct *task, u16 id);
bool sol_member_assign_child(struct task_struct *child, u16 id,
			     unsigned long clone_flags);
/* Being forked: nobody but task_newtask's probes may touch it. */
bool sol_member_is_new(struct task_struct *task);
void sol_member_settle(void);
struct task_struct **sol_member_gather(bool (*pick)(struct task_struct *task,
						    void *arg),
				       void *arg, u32 *n);

void sol_member_evict(struct sol_group *group);

/* sol_stay_task() for all tasks of @group. */
void sol_member_stay_all(struct sol_group *group);

/* The group of @task with a reference, or NULL. */
struct sol_group *sol_member_group(struct task_struct *task);

/* Refuse, with words, if a task of @group may not use any node of @cells. */
int sol_member_check_all(struct sol_group *group, const struct sol_cells *cells);

/* Thread ids in @group, one a line, as the reader's pid namespace has them. */
size_t sol_member_list(const struct sol_group *group, char *buf, size_t size);

/* Nodes, as bitmaps: of the CPUs that @task may use; that it may allocate on. */
u64 sol_member_near(struct task_struct *task);
u64 sol_member_nodes(struct task_struct *task);

#endif /* SOLOIST_MEMBER_H */
