/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs: one migration that a user asked for at a time, and its report. */
#ifndef SOLOIST_JOB_H
#define SOLOIST_JOB_H

#include <linux/ktime.h>
#include <linux/mutex.h>

#include "../command/rmdir.h"
#include "batch.h"

struct sol_group;

/**
 * struct sol_job_how - what the user said of a job
 * @rate: bytes per second that it may move; 0: no limit
 * @isolated: isolated CPUs may be interrupted
 * @dir: the group's directory, if one of its files was written; or NULL
 */
struct sol_job_how {
	u64 rate;
	bool isolated;
	const struct config_item *dir;
};

enum sol_job_state { SOL_JOB_NONE, SOL_JOB_RUNS, SOL_JOB_DONE, SOL_JOB_ENDED };

/**
 * struct sol_job - a kind of job, and the last one of it
 * @mutex: held while one runs
 * @what: the kind, for refusals
 * @group: whose it was, to compare only; NULL: that is gone
 * @id: its number
 * @state: enum sol_job_state; ENDED: before it was done
 * @start: when it began
 * @rate: bytes per second that it may move; 0: no limit
 * @spare: an isolated CPU is there, and shall not be interrupted
 * @dir: as of struct sol_job_how
 * @report: what became of the pages
 */
struct sol_job {
	struct mutex mutex;
	const char *what;
	const struct sol_group *group;
	u16 id;
	int state;
	ktime_t start;
	u64 rate;
	bool spare;
	const struct config_item *dir;
	struct sol_move_report report;
};

#define SOL_JOB(name, what_)						\
struct sol_job name = {							\
	.mutex = __MUTEX_INITIALIZER((name).mutex), .what = (what_)	\
}

/* Begin a job of @group's. 0; -EBUSY and words: another one runs. */
int sol_job_begin(struct sol_job *job, const struct sol_group *group,
		  const struct sol_job_how *how);

/* End it. Return: @err, and if that is not 0 there are words. */
int sol_job_end(struct sol_job *job, const struct sol_group *group, int err);

/* Must it end early? 0: no; -EINTR: a signal came; -ENOENT: its group goes. */
int sol_job_over(struct sol_job *job);

/**
 * sol_job_passes() - pass over the pages until none is worth another try, at most thrice
 * @job: runs; each pass has its counts of what stayed
 * @pass: one pass; 0, 1: another one may do more, or -errno
 * @ctx: for @pass
 *
 * Pages in use for a moment and huge ones not split yet are worth a try. May sleep.
 * Return: 0 or the last pass' -errno; -EINTR: a signal came between two.
 */
int sol_job_passes(struct sol_job *job, int (*pass)(void *ctx), void *ctx);

/* How long the rate wants it to sleep now, microseconds. */
u64 sol_job_due_us(const struct sol_job *job);

/* Sleep as long as the rate wants, unless it is over. */
void sol_job_pace(struct sol_job *job);

/* The report of @group's last job, NULL: of the last one of all, as KEY VALUE lines. */
ssize_t sol_job_show(struct sol_job *job, const struct sol_group *group,
		     char *page);

/* @group goes: its report, too, and if its job runs, that ends soon. Does not wait. */
void sol_job_forget(struct sol_job *job, const struct sol_group *group);

#endif /* SOLOIST_JOB_H */
