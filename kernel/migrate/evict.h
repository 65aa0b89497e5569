/* SPDX-License-Identifier: GPL-2.0 */
/* Evict: what others have in a group's colours goes elsewhere. */
#ifndef SOLOIST_EVICT_H
#define SOLOIST_EVICT_H

#include "job.h"

/**
 * sol_evict() - move others' pages out of a group's colours
 * @group: a group that exists
 * @how: how fast, and whether isolated CPUs may be interrupted
 *
 * Sleeps, and lasts as long as that takes; a signal ends it, and so does the group's
 * end. Frames that come free are in the group's lists then, as far as the kernel's
 * watermarks allow.
 *
 * Return: 0: it went over all, and the report says what stayed; or, with words, -EINTR,
 * -EBUSY, -ENODATA, -ENOENT: the group was removed meanwhile, -ENOMEM.
 */
int sol_evict(struct sol_group *group, const struct sol_job_how *how);

/* Files: the report of @group's last eviction, NULL: of the last one of all. */
ssize_t sol_evict_show(const struct sol_group *group, char *page);
void sol_evict_forget(const struct sol_group *group);

void sol_evict_init(void);

#endif /* SOLOIST_EVICT_H */
