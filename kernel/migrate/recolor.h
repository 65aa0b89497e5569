/* SPDX-License-Identifier: GPL-2.0 */
/* Recolour: pages that running tasks have already move into their group's colours. */
#ifndef SOLOIST_RECOLOR_H
#define SOLOIST_RECOLOR_H

#include "job.h"

struct task_struct;

/**
 * sol_recolor() - move present pages of tasks into their group's colours
 * @group: a group that exists
 * @task: the process, or NULL: all of the group
 * @how: how fast, and whether isolated CPUs may be interrupted
 *
 * The tasks go on running; one that touches a page that just moves waits for that.
 * Sleeps, and lasts as long as that takes; a signal ends it, and so does the group's end.
 *
 * Return: 0: it went over all, and the report says what stayed; or, with words, -EINTR,
 * -EBUSY, -ENODATA, -ENOENT: the group was removed meanwhile, -ENOMEM, -EOPNOTSUPP,
 * -EINVAL: the process is not of the group.
 */
int sol_recolor(struct sol_group *group, struct task_struct *task,
		const struct sol_job_how *how);

/* Files: the report of @group's last one, NULL: of the last one of all. */
ssize_t sol_recolor_show(const struct sol_group *group, char *page);
void sol_recolor_forget(const struct sol_group *group);

void sol_recolor_init(void);

#endif /* SOLOIST_RECOLOR_H */
