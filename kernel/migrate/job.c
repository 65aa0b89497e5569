// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: a migration that a user asked for runs in the user's own write(2), so that it
 * ends with that process and a signal stops it. One of a kind runs at a time; whoever
 * reads the file meanwhile sees how far it is.
 *
 * Locking: ->mutex for the job that runs. The report has one writer; who reads it sees
 * numbers of a moment.
 */
#include <linux/sched/signal.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../group/group.h"
#include "isolated.h"
#include "job.h"

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
	job->id = group->id;
	WRITE_ONCE(job->group, group);
	WRITE_ONCE(job->state, SOL_JOB_RUNS);
	return 0;
}

void sol_job_end(struct sol_job *job, int err)
{
	job->report.took_us = ktime_us_delta(ktime_get(), job->start);
	WRITE_ONCE(job->state, err ? SOL_JOB_ENDED : SOL_JOB_DONE);
	mutex_unlock(&job->mutex);
}

void sol_job_pace(struct sol_job *job)
{
	/* What was unmapped is copied when it is used next. */
	u64 bytes = (job->report.moved + job->report.unmapped) << PAGE_SHIFT;
	u64 took, due;

	if (!job->rate)
		return;
	due = mul_u64_u64_div_u64(bytes, USEC_PER_SEC, job->rate);
	while (!signal_pending(current)) {
		took = ktime_us_delta(ktime_get(), job->start);
		if (took >= due)
			break;
		schedule_timeout_interruptible(usecs_to_jiffies(
			min_t(u64, due - took, USEC_PER_SEC)));
	}
}

static ssize_t show_stood(const struct sol_move_report *r, char *page, ssize_t n)
{
	int i;

	for (i = 0; i < SOL_TIMES - 1; i++)
		n += sysfs_emit_at(page, n, "stood_lt_%lu %llu\n",
				   1ul << (SOL_TIME_MIN + i), r->stood[i]);
	return n + sysfs_emit_at(page, n, "stood_more %llu\n", r->stood[i]);
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
	mutex_lock(&job->mutex);
	if (job->group == group)
		WRITE_ONCE(job->group, NULL);
	mutex_unlock(&job->mutex);
}
