/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * When a stopped CPU goes on, real-time tasks go first, as on any CPU: that it
 * stood still does not make fair tasks starve, for which kernels from 6.12 on
 * would prefer them (kernel/guard_fair.c). Fair tasks that do starve still get
 * their turn on these.
 */
#define _GNU_SOURCE
#include "guard.h"

#define CPU 2

/* Wakes, counts, sleeps; makes no traffic. */
static void *beat(void *arg)
{
	struct worker *w = arg;

	if (pin_self(CPU) || (w->err = set_policy(SCHED_FIFO)))
		return NULL;
	while (!w->quit) {
		w->done++;
		sleep_ms(1);
	}
	return NULL;
}

/*
 * A fair task uses up each budget at once, and the CPU stands still nearly
 * always. The longer of two looks is beyond what a fair task waits for its turn.
 */
static void real_time_first(void)
{
	struct worker hog, rt = { .cpu = CPU };
	long long stops, periods;
	int tries = GUARD_TRIES;
	long beats;

	worker_start(&hog, CPU, SCHED_OTHER, 0);
	worker_await(&hog);
	if (pthread_create(&rt.thread, NULL, beat, &rt))
		guest_die("pthread_create");
	must_limit(CPU, "2048000 reclaim=0");	/* 10 lines a period */
	sleep_ms(1500);
	do {
		struct usage u = usage_so_far(CPU, "used_bytes");

		beats = rt.done;
		sleep_ms(2000);
		beats = rt.done - beats;
		usage_since(&u, CPU, "used_bytes");
		stops = u.stops;
		periods = u.periods;
		printf("# of %lld periods %lld used up, %ld beats\n", periods,
		       stops, beats);
	} while (stops * 10 < periods * 9 && --tries);
	guest_check(stops * 10 >= periods * 9, "stands-still",
		    "%lld of %lld periods used up", stops, periods);
	guest_check(beats * 10 >= periods * 9 && !rt.err, "real-time-first",
		    "%ld beats in %lld periods, policy: %s", beats, periods,
		    strerror(rt.err));
	must_limit(CPU, "off");
	worker_stop(&rt);
	worker_stop(&hog);
}

/* A real-time task would take all of the time in which the CPU may run. */
static void fair_has_its_turn(void)
{
	struct worker hog, fair;
	long before, turns = 0;

	worker_start(&fair, CPU, SCHED_OTHER, 0);
	worker_await(&fair);
	worker_start(&hog, CPU, SCHED_FIFO, 0);
	must_limit(CPU, "61440000 reclaim=0");	/* 300 lines a period */
	sleep_ms(500);
	before = fair.done;
	for (int i = 0; i < GUARD_TRIES && !turns; i++) {
		sleep_ms(1000);
		turns = fair.done - before;
	}
	printf("# %ld fair turns, %s", turns, stats_of(CPU));
	guest_check(turns && !hog.err, "fair-has-its-turn",
		    "%ld turns, policy: %s", turns, strerror(hog.err));
	/* First, for a spinning FIFO task keeps RCU from ending on PREEMPT_RT. */
	worker_stop(&hog);
	worker_stop(&fair);
	must_limit(CPU, "off");
}

int main(void)
{
	guard_reset();
	pin_self(0);
	settings("event page-faults\nperiod_us 20000\nr_min 100000000");
	real_time_first();
	if (access("/sys/kernel/debug/sched/fair_server", F_OK))
		printf("# this kernel has no fair server\n");
	else
		fair_has_its_turn();
	guard_explain();
	guard_reset();
	return guest_exit();
}
