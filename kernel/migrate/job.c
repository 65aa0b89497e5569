// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: a migration that a user asked for runs in the user's own write(2), so that it
 * ends with that process and a signal stops it. One of a kind runs at a time; whoever
 * reads the file meanwhile sees how far it is.
 *
 * Nobody shall wait for a job, so one whose group goes ends early. An ephemeral group
 * that goes says so (sol_job_forget()). One that rmdir(2) removes can't
 * (command/rmdir.h).
 *
 * Locking: ->mutex for the job that runs; it is tried, never waited for. ->group becomes
 * NULL without it. The report has one writer; who reads it sees numbers of a moment.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../frames/isolated.h"
#include "../group/group.h"
#include "../palette/reap.h"
#include "job.h"

#define PASSES		3
#define PASS_PAUSE	50	/* milliseconds */

int sol_job_begin(struct sol_job *job, const struct sol_group *group,
		  const struct sol_job_how *how)
{
	if (!mutex_trylock(&job->mutex))
		return sol_deny(-EBUSY, "%s: another one runs; wait for it",
				job->what);
	memset(&job->report, 0, sizeof(job->report));
	job->start = ktime_get();
	job->rate = how->rate;
	job->spare = !how->isolated && sol_any_isolated();
	job->dir = how->dir;
	job->id = group->id;
	WRITE_ONCE(job->group, group);
	WRITE_ONCE(job->state, SOL_JOB_RUNS);
	return 0;
}

static int deny(const struct sol_job *job, const struct sol_group *group,
		int err)
{
	switch (err) {
	case 0:
		return 0;
	case -EINTR:
		return sol_deny(err, "%s: interrupted", job->what);
	case -ENOENT:
		return sol_deny(err, "%s: %s was removed meanwhile", job->what,
				group->name);
	case -ENODATA:
		return sol_deny(err, "%s: %s has no colours any more",
				job->what, group->name);
	default:
		return sol_deny(err, "%s: no memory", job->what);
	}
}

int sol_job_end(struct sol_job *job, const struct sol_group *group, int err)
{
	job->report.took_us = ktime_us_delta(ktime_get(), job->start);
	WRITE_ONCE(job->state, err ? SOL_JOB_ENDED : SOL_JOB_DONE);
	mutex_unlock(&job->mutex);
	return deny(job, group, err);
}

int sol_job_over(struct sol_job *job)
{
	if (signal_pending(current))
		return -EINTR;
	return !READ_ONCE(job->group) || sol_rmdir_waits(job->dir) ? -ENOENT : 0;
}

u64 sol_job_due_us(const struct sol_job *job)
{
	/* The next use copies a page that was unmapped. */
	u64 bytes = (job->report.moved + job->report.unmapped) << PAGE_SHIFT;
	u64 took = ktime_us_delta(ktime_get(), job->start), due;

	if (!job->rate)
		return 0;
	due = mul_u64_u64_div_u64(bytes, USEC_PER_SEC, job->rate);
	return due - min(due, took);
}

void sol_job_pace(struct sol_job *job)
{
	u64 us;

	while (!sol_job_over(job) && (us = sol_job_due_us(job)))
		schedule_timeout_interruptible(usecs_to_jiffies(
			min_t(u64, us, SOL_LOOK_MS * USEC_PER_MSEC)));
}

static ssize_t show_stood(const struct sol_move_report *r, char *page, ssize_t n)
{
	int i;

	for (i = 0; i < SOL_TIMES - 1; i++)
		n += sysfs_emit_at(page, n, "stood_lt_%lu %llu\n",
				   1ul << (SOL_TIME_MIN + i), r->stood[i]);
	return n + sysfs_emit_at(page, n, "stood_more %llu\n", r->stood[i]);
}

int sol_job_passes(struct sol_job *job, int (*pass)(void *ctx), void *ctx)
{
	struct sol_move_report *r = &job->report;
	int again = 1, i;

	for (i = 0; i < PASSES && again > 0; i++) {
		/* A page that waits in a CPU's batch for its LRU list can't be isolated. */
		if (i == 1)
			sol_reap_drain(!job->spare);
		if (i && msleep_interruptible(PASS_PAUSE))
			return -EINTR;
		memset(r->stays, 0, sizeof(r->stays));
		r->seen = 0;
		r->in_place = 0;
		again = pass(ctx);
		if (!again)
			again = r->stays[SOL_STAYS_BUSY] || r->stays[SOL_STAYS_HUGE];
	}
	return min(again, 0);
}

ssize_t sol_job_show(struct sol_job *job, const struct sol_group *group,
		     char *page)
{
	static const char *const states[] = { "none", "runs", "done", "ended" };
	static const char *const stays[] = {
		"pinned", "unevictable", "groups", "kernel", "shared", "isolated",
		"huge", "busy", "no_room",
	};
	struct sol_move_report r = job->report;
	int state = READ_ONCE(job->state), i;
	ssize_t n = 0;

	if (group ? READ_ONCE(job->group) != group || job->id != group->id : !state)
		return sysfs_emit(page, "state none\n");
	if (state == SOL_JOB_RUNS)
		r.took_us = ktime_us_delta(ktime_get(), job->start);
	if (!group)
		n = sysfs_emit(page, "group %u\n", job->id);
	n += sysfs_emit_at(page, n,
		       "state %s\nseen %llu\nin_place %llu\nmoved %llu\ndropped %llu\nunmapped %llu\nlisted %llu\n",
		       states[state], r.seen, r.in_place, r.moved, r.dropped,
		       r.unmapped, r.listed);
	for (i = 0; i < SOL_N_STAYS; i++)
		n += sysfs_emit_at(page, n, "%s %llu\n", stays[i], r.stays[i]);
	n += sysfs_emit_at(page, n, "longest_us %llu\ntook_us %llu\n",
			   r.longest_us, r.took_us);
	return show_stood(&r, page, n);
}

void sol_job_forget(struct sol_job *job, const struct sol_group *group)
{
	cmpxchg(&job->group, group, NULL);
}
