/* SPDX-License-Identifier: GPL-2.0 */
/* Groups that are bound to cgroups (v2): tasks in these, and later ones, join. */
#ifndef SOLOIST_CGROUP_H
#define SOLOIST_CGROUP_H

#include <linux/types.h>

struct sol_group;
struct task_struct;

#define SOL_CGROUP_PATH	1024	/* bytes that the kernel's tracepoints tell */

/**
 * sol_cgroup_bind() - bind a group to cgroups, and to no others any more
 * @group: the group
 * @paths: of the cgroups, one a line, from the root of the hierarchy; they need not
 *	exist yet. "": unbind; members stay. The text is used up
 *
 * May sleep. Return: 0, -EINVAL, -EBUSY, -ENOENT (it was removed) or -ENOMEM, and words.
 */
int sol_cgroup_bind(struct sol_group *group, char *paths);
void sol_cgroup_unbind(struct sol_group *group);

/* Write the paths to @page, one a line. Return: bytes written. */
ssize_t sol_cgroup_show(const struct sol_group *group, char *page);

/* Is there a cgroup at each of @group's paths now? */
bool sol_cgroup_present(const struct sol_group *group);

/* Tasks that came to the cgroups but may use no node of @group's colours. */
u64 sol_cgroup_refused(const struct sol_group *group);

int sol_cgroup_init(void);	/* follow.c */
void sol_cgroup_exit(void);

#endif /* SOLOIST_CGROUP_H */
