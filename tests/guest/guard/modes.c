/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a CPU is stopped for: writes apart from reads, the priority of the task
 * that runs (per_task), only those that share its banks (by_bank); and the
 * error that reclaiming makes, counted.
 */
#define _GNU_SOURCE
#include "guard.h"

#define Q 20			/* lines in a period of 10 ms */
#define LINES(n) ((n) * 409600ll)	/* bytes per second, page faults */

static struct worker a, b;

/* What CPU 1 did in half a second. */
static struct usage look(const char *key)
{
	struct usage u = usage_so_far(1, key);

	sleep_ms(500);
	usage_since(&u, 1, key);
	return u;
}

/* Once it was stopped in half of the periods. */
static struct usage look_when_stopped(const char *key)
{
	struct usage u;
	int tries = GUARD_TRIES;

	do
		u = look(key);
	while ((u.stops <= u.periods / 2 || u.periods <= 10) && --tries);
	return u;
}

/*
 * Time stands in for writes here, page faults for reads. Half of a CPU's time
 * and more reads than it can make, then the other way round.
 */
static void reads_and_writes(void)
{
	struct usage u;

	settings("event page-faults\nline 64\nwrite_event " RUNNING "\nperiod_us 10000\nr_min 64000000000\nwrite_r_min 64000000000");
	worker_start(&a, 1, SCHED_OTHER, 0);
	must_limit(1, "640000000 write=32000000000 reclaim=0");
	sleep_ms(100);
	u = look_when_stopped("used_write_bytes");
	guest_check(u.stops > u.periods / 2 && u.periods > 10,
		    "stopped-for-writes", "%lld stops in %lld periods",
		    u.stops, u.periods);
	/* The clock goes on while the CPU is stopped: beyond the budget. */
	guest_check(u.used >= (u.periods - 1) * 320000000, "writes-counted",
		    "%lld bytes in %lld periods", u.used, u.periods);

	must_limit(1, "12800 write=64000000000 reclaim=0");	/* 2 faults */
	sleep_ms(100);
	u = look_when_stopped("used_bytes");
	guest_check(u.stops > u.periods / 2, "stopped-for-reads",
		    "%lld stops in %lld periods", u.stops, u.periods);
	guest_check(u.used / 64 <= 2 * (u.periods + 1), "reads-kept",
		    "%lld faults in %lld periods", u.used / 64, u.periods);
	worker_stop(&a);
	guard_reset();
}

/* Both CPUs have a weight; the tasks' nice values, 0 and 5, are what counts. */
static void priorities(void)
{
	long long u, v;
	int i;

	settings("event page-faults\nperiod_us 10000\nr_min 16384000\nper_task 1");
	must_limit(1, "weight=1 reclaim=0");
	must_limit(2, "weight=1 reclaim=0");
	worker_start(&a, 1, SCHED_OTHER, 0);
	if (setpriority(PRIO_PROCESS, 0, 5))
		guest_die("setpriority: %s", strerror(errno));
	worker_start(&b, 2, SCHED_OTHER, 0);
	setpriority(PRIO_PROCESS, 0, 0);
	/* 1024 to 335 of 40 lines. An emulator may lose some periods. */
	for (i = 0; i < GUARD_TRIES; i++) {
		sleep_ms(100);
		u = stat_of(1, "used_bytes");
		v = stat_of(2, "used_bytes");
		sleep_ms(500);
		u = stat_of(1, "used_bytes") - u;
		v = stat_of(2, "used_bytes") - v;
		if (v && u * 10 > v * 25 && u * 10 < v * 36)
			break;
	}
	guest_check(i < GUARD_TRIES, "per-task",
		    "%lld and %lld bytes, not 3.06 : 1", u, v);
	guest_check(!strcmp(guest_read("guard/cpu1/bandwidth"),
			    "weight=1 reclaim=0\n"),
		    "weights-stay", "%s", guest_read("guard/cpu1/bandwidth"));
	worker_stop(&a);
	worker_stop(&b);
	guard_reset();
}

static int group_limit(const char *name, const char *value)
{
	char path[64];

	snprintf(path, sizeof(path), "groups/%s/bandwidth", name);
	return guest_write(path, value);
}

/*
 * Lines per period of CPU 1, which would use more, its neighbour idle; looked at
 * until there are more than so many.
 */
static long long beside_idle(long long more)
{
	int tries = GUARD_TRIES;
	struct usage u;

	sleep_ms(100);
	do {
		u = look("used_bytes");
		u.used /= 4096 * (u.periods ?: 1);
	} while (u.used <= more && --tries);
	return u.used;
}

/*
 * Two groups without a common bank set, and CPU 3 that has no limit at all. Each
 * may reserve what one bank guarantees, and the first is let run on (spare
 * sharing) as soon as it has used its own.
 */
static void banks(void)
{
	long long lines;

	guest_group("left", "0-1");
	guest_group("right", "2-3");
	settings("event page-faults\nperiod_us 10000\nsharing spare\nr_min 12288000");	/* 30 lines */
	if (group_limit("left", "8192000 reclaim=0 cpus=1"))	/* 20 */
		guest_die("left: %s", guest_status());
	guest_check(group_limit("right", "8192000 reclaim=0 cpus=2") == -ENOSPC,
		    "common-banks-refused", "%s", guest_status());
	if (group_limit("right", "4096000 reclaim=0 cpus=2"))	/* 10 */
		guest_die("right: %s", guest_status());
	worker_start(&a, 1, SCHED_OTHER, 0);
	lines = beside_idle(0);
	guest_check(lines && lines <= Q + 1, "waits-for-all",
		    "%lld lines a period", lines);
	settings("by_bank 1");
	guest_check(group_limit("right", "8192000 reclaim=0 cpus=2") == 0,
		    "own-banks-accepted", "%s", guest_status());
	lines = beside_idle(2 * Q);
	guest_check(lines > 2 * Q, "waits-for-nobody", "%lld lines a period",
		    lines);
	guest_check(guest_write("groups/right/bank_set", "1-2") == -EBUSY,
		    "colors-kept", "%s", guest_status());
	guest_check(guest_write("groups/right/exhaust", "spill") == -EBUSY,
		    "spill-later-refused", "%s", guest_status());
	worker_stop(&a);
	/* A group that spills takes pages of any bank. */
	group_limit("right", "off");
	if (guest_write("groups/right/exhaust", "spill"))
		guest_die("spill: %s", guest_status());
	guest_check(group_limit("right", "8192000 reclaim=0 cpus=2") == -ENOSPC,
		    "spill-shares-all-banks", "%s", guest_status());
	group_limit("left", "off");
	group_limit("right", "off");
	guard_reset();
	guest_ungroup("left");
	guest_ungroup("right");
}

#define STALL "/sys/module/soloist/parameters/guard_stall"

/*
 * CPU 1 uses its budget up in most of a period, and begins another at once, time and
 * again. CPU 2 can't, for CPU 3 has budget left. It depends on the timer, which CPU 1 must
 * not move, and on the watchdog, which CPU 1 must not satisfy.
 */
static void banks_restart(void)
{
	long long restarts, from;
	struct usage u;
	int i, periods;

	guest_group("left", "0-1");
	guest_group("right", "2-3");
	settings("event page-faults\nperiod_us 100000\nsharing proportional\nr_min 4096000\nby_bank 1");
	if (group_limit("left", "2457600 reclaim=0 cpus=1"))	/* 60 lines */
		guest_die("left: %s", guest_status());
	if (group_limit("right", "1638400 reclaim=0 cpus=2-3"))	/* 20 each */
		guest_die("right: %s", guest_status());
	worker_start(&a, 1, SCHED_OTHER, 2);
	worker_start(&b, 2, SCHED_OTHER, 0);
	sleep_ms(500);
	/* An emulator may run CPU 1 too little at first. */
	for (i = 0; i < GUARD_TRIES; i++) {
		restarts = guard_stat("restarts");
		from = now_ns();
		u = usage_so_far(2, "used_bytes");
		sleep_ms(2000);
		usage_since(&u, 2, "used_bytes");
		periods = (now_ns() - from) / (100 * MS);
		restarts = guard_stat("restarts") - restarts;
		if (restarts > 5)
			break;
	}
	guest_check(i < GUARD_TRIES && u.periods * 3 > periods * 2, "timer-is-everybodys",
		    "%lld periods in the time of %d, beside %lld restarts",
		    u.periods, periods, restarts);
	guest_set_kernel(STALL, "1");
	for (i = 0; i < 500 && guard_stat("stalled") != 1; i++)
		sleep_ms(20);
	guest_check(i < 500, "watchdog-is-everybodys", "%s",
		    guest_read("guard/stats"));
	guest_set_kernel(STALL, "0");
	worker_stop(&a);
	worker_stop(&b);
	group_limit("left", "off");
	group_limit("right", "off");
	guard_reset();
	guest_ungroup("left");
	guest_ungroup("right");
}

/*
 * CPU 1 uses 10 of its 40 lines, gives the rest, and then wants 30: CPU 2 has
 * reclaimed them. It runs on, but was not sure to have all.
 */
static void underruns(const char *name, bool reclaim)
{
	char limit[32];
	long long from;
	bool some = false;

	settings("event page-faults\nperiod_us 10000\nr_min 100000000\nq_min 4");
	snprintf(limit, sizeof(limit), "%lld reclaim=%d", LINES(40), reclaim);
	must_limit(1, limit);
	snprintf(limit, sizeof(limit), "%lld reclaim=%d", LINES(10), reclaim);
	must_limit(2, limit);
	from = stat_of(1, "underruns");
	worker_start(&a, 1, SCHED_OTHER, 1);
	worker_start(&b, 2, SCHED_OTHER, 0);
	for (int i = 0; i < 10 || (reclaim && !some && i < 60); i++) {
		struct worker more;

		sleep_ms(80);
		worker_start(&more, 1, SCHED_OTHER, 2);
		sleep_ms(30);
		worker_stop(&more);
		some = stat_of(1, "underruns") > from;
	}
	guest_check(some == reclaim, name, "%lld under-run errors",
		    stat_of(1, "underruns") - from);
	worker_stop(&a);
	worker_stop(&b);
	guard_reset();
}

int main(void)
{
	guard_reset();
	pin_self(0);
	reads_and_writes();
	priorities();
	banks();
	banks_restart();
	underruns("underruns-counted", true);
	underruns("no-underruns-alone", false);
	return guest_exit();
}
