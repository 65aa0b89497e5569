/* SPDX-License-Identifier: GPL-2.0 */
/* Groups that are bound to a cgroup (v2): tasks in it, and later ones, join. */
#ifndef SOLOIST_CGROUP_H
#define SOLOIST_CGROUP_H

#include <linux/types.h>

struct sol_group;
struct task_struct;

#define SOL_CGROUP_PATH	1024	/* bytes that the kernel's tracepoints tell */

/**
 * sol_cgroup_bind() - bind a group to a cgroup
 * @group: the group
 * @path: of the cgroup, from the root of the hierarchy; it need not exist yet. "":
 *	unbind; members stay
 *
 * May sleep. Return: 0, -EINVAL, -EBUSY or -ENOMEM, and words.
 */
int sol_cgroup_bind(struct sol_group *group, const char *path);
void sol_cgroup_unbind(struct sol_group *group);

/* Write the path and a newline to @page, or nothing. Return: bytes written. */
ssize_t sol_cgroup_show(const struct sol_group *group, char *page);

/* Is there a cgroup at @group's path now? */
bool sol_cgroup_present(const struct sol_group *group);

/* Tasks that came to the cgroup but may use no node of @group's colours. */
u64 sol_cgroup_refused(const struct sol_group *group);

int sol_cgroup_init(void);
void sol_cgroup_exit(void);

#endif /* SOLOIST_CGROUP_H */
