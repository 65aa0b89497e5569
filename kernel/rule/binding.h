/* SPDX-License-Identifier: GPL-2.0 */
/* Bindings of groups to cgroups: what there are, and what they say of a task. */
#ifndef SOLOIST_BINDING_H
#define SOLOIST_BINDING_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>

struct cgroup;
struct sol_group;
struct task_struct;

/**
 * struct binding - of a group to a cgroup; a group may have several
 * @link: in the list of all
 * @next: in a list that no probe sees, before and after that
 * @group: the group
 * @cgrp: the cgroup at the path now, with a reference; NULL: there is none
 * @refused: tasks whose cpuset has no node of the group's colours, or that were being
 *	forked for too long
 * @stays: the group's new paths have it, too; sol_bindings_mutex
 * @path: below the root of cgroup v2
 */
struct binding {
	struct list_head link;
	struct binding *next;
	struct sol_group *group;
	struct cgroup *cgrp;
	atomic64_t refused;
	bool stays;
	char path[];
};

extern struct list_head sol_bindings;	/* written under sol_bindings_mutex, read under RCU */
extern u32 sol_n_bindings;
extern struct mutex sol_bindings_mutex;

/* Is @b of the root: of everything else? */
static inline bool sol_binding_is_root(const struct binding *b)
{
	return !b->path[1];
}

/* The binding of the nearest bound cgroup of @task, or NULL. RCU. */
struct binding *sol_binding_of(struct task_struct *task);

/* One of the bindings of group @id; NULL: it is not bound. RCU or sol_bindings_mutex. */
struct binding *sol_binding_for(u16 id);

/* The binding of @path, or NULL. sol_bindings_mutex. */
struct binding *sol_binding_at(const char *path);

/* Is @task in group @id as one of everything else: for no cgroup nearer than the root? */
bool sol_binding_is_else(struct task_struct *task, u16 id);

/* Shall a task of group @id be in @b's, NULL: in none, for its cgroup is? RCU. */
bool sol_binding_changes(const struct binding *b, u16 id);

/* @b stands for @cgrp (NULL: for none) from now on. Any context. */
void sol_binding_set(struct binding *b, struct cgroup *cgrp);

/* Free @b and those behind it, which no probe sees. */
void sol_bindings_free(struct binding *b);

#endif /* SOLOIST_BINDING_H */
