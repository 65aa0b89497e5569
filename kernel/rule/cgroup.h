/* SPDX-License-Identifier: GPL-2.0 */
/* Groups bound to a cgroup (v2): what is in it, or comes into it, is theirs. */
#ifndef SOLOIST_CGROUP_H
#define SOLOIST_CGROUP_H

#include <linux/types.h>

struct sol_group;
struct task_struct;

#define SOL_CGROUP_PATH	1024	/* as long as the kernel's tracepoints tell */

/*
 * Bind @group to the cgroup at @path, from the root of the hierarchy on; it need
 * not exist yet. "": to none; members stay. 0, -EINVAL, -EBUSY, -ENOMEM; words.
 */
int sol_cgroup_bind(struct sol_group *group, const char *path);
void sol_cgroup_unbind(struct sol_group *group);

/* The path into @page and a newline, or nothing; its length. */
ssize_t sol_cgroup_show(const struct sol_group *group, char *page);

/* Is there a cgroup at the path now? */
bool sol_cgroup_present(const struct sol_group *group);

/* Tasks that came in but may use no node of the group's colours. */
u64 sol_cgroup_refused(const struct sol_group *group);

int sol_cgroup_init(void);
void sol_cgroup_exit(void);

#endif /* SOLOIST_CGROUP_H */
