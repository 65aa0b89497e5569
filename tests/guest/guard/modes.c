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

static long long used_in(int cpu, const char *key, long ms, long long *periods)
{
	long long used = stat_of(cpu, key), from = stat_of(cpu, "periods");

	sleep_ms(ms);
	*periods = stat_of(cpu, "periods") - from;
	return stat_of(cpu, key) - used;
}

/*
 * Time stands in for writes here, page faults for reads. Half of a CPU's time
 * and more reads than it can make, then the other way round.
 */
static void reads_and_writes(void)
{
	long long stops, used, periods;

	settings("event page-faults\nline 64\nwrite_event cpu-clock\nperiod_us 10000\nr_min 64000000000\nwrite_r_min 64000000000");
	worker_start(&a, 1, SCHED_OTHER, 0);
	must_limit(1, "640000000 write=32000000000 reclaim=0");
	sleep_ms(100);
	stops = stat_of(1, "stops");
	used = used_in(1, "used_write_bytes", 500, &periods);
	guest_check(stat_of(1, "stops") - stops > periods / 2 && periods > 10,
		    "stopped-for-writes", "%lld stops in %lld periods",
		    stat_of(1, "stops") - stops, periods);
	/* The clock goes on while the CPU is stopped: beyond the budget. */
	guest_check(used >= (periods - 1) * 320000000, "writes-counted",
		    "%lld bytes in %lld periods", used, periods);

	must_limit(1, "12800 write=64000000000 reclaim=0");	/* 2 faults */
	sleep_ms(100);
	stops = stat_of(1, "stops");
	used = used_in(1, "used_bytes", 500, &periods) / 64;
	guest_check(stat_of(1, "stops") - stops > periods / 2,
		    "stopped-for-reads", "%lld stops in %lld periods",
		    stat_of(1, "stops") - stops, periods);
	guest_check(used <= 2 * (periods + 1), "reads-kept",
		    "%lld faults in %lld periods", used, periods);
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
	for (i = 0; i < 8; i++) {
		sleep_ms(100);
		u = stat_of(1, "used_bytes");
		v = stat_of(2, "used_bytes");
		sleep_ms(500);
		u = stat_of(1, "used_bytes") - u;
		v = stat_of(2, "used_bytes") - v;
		if (v && u * 10 > v * 25 && u * 10 < v * 36)
			break;
	}
	guest_check(i < 8, "per-task", "%lld and %lld bytes, not 3.06 : 1", u,
		    v);
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

/* Lines per period of a CPU that would use more, its neighbour idle. */
static long long beside_idle(void)
{
	long long periods, used;

	sleep_ms(100);
	used = used_in(1, "used_bytes", 500, &periods);
	return used / 4096 / (periods ?: 1);
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
	lines = beside_idle();
	guest_check(lines <= Q + 1, "waits-for-all", "%lld lines a period",
		    lines);
	settings("by_bank 1");
	guest_check(group_limit("right", "8192000 reclaim=0 cpus=2") == 0,
		    "own-banks-accepted", "%s", guest_status());
	lines = beside_idle();
	guest_check(lines > 2 * Q, "waits-for-nobody", "%lld lines a period",
		    lines);
	guest_check(guest_write("groups/right/bank_set", "1-2") == -EBUSY,
		    "colors-kept", "%s", guest_status());
	worker_stop(&a);
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
	long long n;

	settings("event page-faults\nperiod_us 10000\nr_min 100000000\nq_min 4");
	snprintf(limit, sizeof(limit), "%lld reclaim=%d", LINES(40), reclaim);
	must_limit(1, limit);
	snprintf(limit, sizeof(limit), "%lld reclaim=%d", LINES(10), reclaim);
	must_limit(2, limit);
	n = stat_of(1, "underruns");
	worker_start(&a, 1, SCHED_OTHER, 1);
	worker_start(&b, 2, SCHED_OTHER, 0);
	for (int i = 0; i < 10; i++) {
		struct worker more;

		sleep_ms(80);
		worker_start(&more, 1, SCHED_OTHER, 2);
		sleep_ms(30);
		worker_stop(&more);
	}
	n = stat_of(1, "underruns") - n;
	guest_check(reclaim ? n > 0 : !n, name, "%lld under-run errors", n);
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
	underruns("underruns-counted", true);
	underruns("no-underruns-alone", false);
	return guest_exit();
}
