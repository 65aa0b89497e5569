/* SPDX-License-Identifier: GPL-2.0 */
/* What the files evict and recolor of a group and of the root share. */
#ifndef SOLOIST_CONTROL_MOVES_H
#define SOLOIST_CONTROL_MOVES_H

#include <linux/configfs.h>

#include "../migrate/job.h"

/**
 * struct moves_words - what was written to evict or recolor
 * @first_is: what the first word is, for refusals
 * @pid_ok: there may be pid=PID
 * @first: the first word, a number
 * @pid: of pid=PID; 0: none
 * @how: the other words
 */
struct moves_words {
	const char *first_is;
	bool pid_ok;
	u32 first;
	pid_t pid;
	struct sol_job_how how;
};

/* Parse @page into @w, whose first two fields are set. 0, or an errno and words. */
int sol_moves_parse(const char *what, const char *page, size_t count,
		    struct moves_words *w);

/* Recolour process @pid, 0: all of @group. As sol_recolor(); -ESRCH: no such process. */
int sol_moves_recolor(struct sol_group *group, pid_t pid,
		      const struct sol_job_how *how);

ssize_t sol_root_evict_show(struct config_item *item, char *page);
ssize_t sol_root_evict_store(struct config_item *item, const char *page,
			     size_t count);
ssize_t sol_root_recolor_show(struct config_item *item, char *page);
ssize_t sol_root_recolor_store(struct config_item *item, const char *page,
			       size_t count);

#endif /* SOLOIST_CONTROL_MOVES_H */
