/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A CPU that goes while it is stopped, comes back, and has its reservation;
 * also the one whose timer begins the periods. Then one that doesn't go in the
 * end. Then the timer stops: all are let go, and held again when it runs.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <fcntl.h>

#define STALL "/sys/module/soloist/parameters/guard_stall"

static bool await(int cpu, const char *key, long long want)
{
	long long until = now_ns() + 20000 * MS;

	while (stat_of(cpu, key) != want)
		if (now_ns() > until)
			return false;
		else
			sleep_ms(5);
	return true;
}

/* A busy host may not run the guest's CPU for a while. */
static void await_turns(struct worker *w, long before)
{
	for (int i = 0; i < 200 && w->done == before; i++)
		sleep_ms(20);
}

static void replug(int cpu, struct worker *w)
{
	char path[64], name[64];
	long before;
	bool stopped = await(cpu, "stopped", 1);

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
		 cpu);
	guest_set_kernel(path, "0");
	before = w->done;
	await_turns(w, before);
	snprintf(name, sizeof(name), "cpu%d-offline", cpu);
	guest_check(stopped && !stat_of(cpu, "ready") && w->done > before, name,
		    "stopped %d, ready %lld, its task did %ld", stopped,
		    stat_of(cpu, "ready"), w->done - before);
	guest_set_kernel(path, "1");
	snprintf(name, sizeof(name), "cpu%d-online", cpu);
	guest_check(await(cpu, "ready", 1), name, "%s",
		    guest_read("guard/stats"));
}

/* Number of the module's state, which a CPU goes through on its way offline. */
static int state_number(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/hotplug/states", "r");
	char line[128];
	int state = -1;

	while (f && state < 0 && fgets(line, sizeof(line), f))
		if (strstr(line, "soloist:guard"))
			state = atoi(line);
	if (f)
		fclose(f);
	return state;
}

/*
 * True: while the CPU is said to be stopped, its task does stand still. At the
 * first stops it may not yet.
 */
static bool stands_still(int cpu, struct worker *w)
{
	long before;
	bool still;
	int tries = 20;

	do {
		long long stops;

		if (!await(cpu, "stopped", 0) || !await(cpu, "stopped", 1))
			return false;
		stops = stat_of(cpu, "stops");
		sleep_ms(5);
		before = w->done;
		sleep_ms(50);
		still = w->done == before;
		still &= stat_of(cpu, "stopped") == 1 &&
			 stat_of(cpu, "stops") == stops;
	} while (!still && --tries);
	return still;
}

/*
 * Going offline is called off after the scheduler has moved all threads away,
 * the one that halts the CPU too.
 */
static void call_off(int cpu)
{
	char path[64], number[16];
	struct worker v, w;
	int fd, err;

	worker_start(&v, cpu, SCHED_OTHER, -1);
	snprintf(number, sizeof(number), "%d", state_number());
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/hotplug/fail",
		 cpu);
	guest_set_kernel(path, number);
	await(cpu, "stopped", 1);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
		 cpu);
	fd = open(path, O_WRONLY);
	err = write(fd, "0", 1) < 0 ? errno : 0;
	close(fd);
	/* Tasks were moved away too, and stay there. */
	worker_start(&w, cpu, SCHED_OTHER, -1);
	guest_check(err == EAGAIN && stands_still(cpu, &w), "called-off",
		    "%s, stopped %lld, %lld stops", strerror(err),
		    stat_of(cpu, "stopped"), stat_of(cpu, "stops"));
	worker_stop(&v);
	worker_stop(&w);
}

int main(void)
{
	struct worker a, b, c;
	long long stalls;
	long before;
	bool still;

	guard_reset();
	pin_self(0);
	settings("event " RUNNING "\nperiod_us 200000\nr_min 64000000000");
	worker_start(&a, 1, SCHED_OTHER, -1);
	worker_start(&b, 2, SCHED_OTHER, -1);
	sleep_ms(50);
	must_limit(1, "6400000000 reclaim=0");	/* 20 of 200 ms */
	must_limit(2, "6400000000 reclaim=0");
	guest_check(guard_stat("master") == 1, "master", "%lld",
		    guard_stat("master"));
	replug(2, &b);
	replug(1, &a);
	/* A CPU is ready before the period's timer moves to it. */
	for (int i = 0; i < 500 && guard_stat("master") != 1; i++)
		sleep_ms(20);
	guest_check(guard_stat("master") == 1, "master-again", "%lld",
		    guard_stat("master"));
	worker_stop(&a);
	worker_stop(&b);
	call_off(2);

	worker_start(&c, 1, SCHED_OTHER, -1);
	still = await(1, "stopped", 0) && await(1, "stopped", 1);
	stalls = guard_stat("stalls");
	guest_set_kernel(STALL, "1");
	for (int i = 0; i < 500 && !guard_stat("stalled"); i++)
		sleep_ms(20);
	before = c.done;
	await_turns(&c, before);
	guest_check(still && guard_stat("stalls") == stalls + 1 &&
		    c.done > before && !stat_of(1, "stopped"),
		    "watchdog-releases", "stopped before %d, %ld turns, %s",
		    still, c.done - before, guest_read("guard/stats"));
	guest_set_kernel(STALL, "0");
	guest_check(await(1, "stopped", 1) && !guard_stat("stalled"),
		    "regulates-again", "%s", guest_read("guard/stats"));
	worker_stop(&c);
	guard_reset();
	return guest_exit();
}
