/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * When a stopped CPU goes on, real-time tasks go first, as on any CPU: that it
 * stood still does not make fair tasks starve, for which kernels from 6.12 on
 * would prefer them (kernel/guard/fair.c). Fair tasks that do starve still get
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

/* What happened on the CPU in a look. */
struct look {
	long beats;
	struct usage usage;
	long long ns, stopped_ns;
};

static struct look look(struct worker *rt, int seconds)
{
	struct look l = { .beats = rt->done, .ns = now_ns() };

	l.stopped_ns = stat_of(CPU, "stopped_ns");
	l.usage = usage_so_far(CPU, "used_bytes");
	sleep_ms(seconds * 1000);
	usage_since(&l.usage, CPU, "used_bytes");
	l.stopped_ns = stat_of(CPU, "stopped_ns") - l.stopped_ns;
	l.ns = now_ns() - l.ns;
	l.beats = rt->done - l.beats;
	return l;
}

/*
 * A fair task uses up each budget at once, and the CPU stands still nearly
 * always: it can't run for the 50 ms of a second that the fair server wants.
 */
static void real_time_first(void)
{
	struct worker hog, rt = { .cpu = CPU };
	int tries = GUARD_TRIES;
	struct look l;
	bool still;

	settings("event page-faults\nperiod_us 200000\nr_min 100000000");
	worker_start(&hog, CPU, SCHED_OTHER, 0);
	worker_await(&hog);
	if (pthread_create(&rt.thread, NULL, beat, &rt))
		guest_die("pthread_create");
	must_limit(CPU, "61440 reclaim=0");	/* 3 lines a period */
	sleep_ms(1500);
	do {
		l = look(&rt, 3);
		still = l.usage.stops * 10 >= l.usage.periods * 9 &&
			l.stopped_ns > l.ns / 100 * 96;
		printf("# of %lld periods %lld used up, stopped for %lld of %lld ms, %ld beats\n",
		       l.usage.periods, l.usage.stops, l.stopped_ns / MS,
		       l.ns / MS, l.beats);
	} while (!still && --tries);
	guest_check(still, "stands-still",
		    "%lld of %lld periods used up, stopped for %lld of %lld ms",
		    l.usage.stops, l.usage.periods, l.stopped_ns / MS,
		    l.ns / MS);
	guest_check(l.beats >= l.usage.periods / 2 && !rt.err,
		    "real-time-first", "%ld beats in %lld periods, policy: %s",
		    l.beats, l.usage.periods, strerror(rt.err));
	must_limit(CPU, "off");
	worker_stop(&rt);
	worker_stop(&hog);
}

/* Processor time of a thread. */
static long long time_of(struct worker *w)
{
	struct timespec t;
	clockid_t clock;

	if (pthread_getcpuclockid(w->thread, &clock) ||
	    clock_gettime(clock, &t))
		guest_die("clock of a thread");
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

/*
 * A real-time task would take all of the time in which the CPU may run, 10 of
 * 20 ms. A turn is 50 ms; the server may also go off while the CPU runs, and then
 * fair tasks run until it next stands still: for 10 ms at most, once a second.
 */
static void fair_has_its_turn(void)
{
	struct worker hog, fair;
	long long ran = 0, most = 0, all = 0;
	int i;

	settings("event " RUNNING "\nperiod_us 20000\nr_min 64000000000");
	/* First, for a FIFO task keeps RCU from ending (classes.c). */
	must_limit(CPU, "32000000000 reclaim=0");
	worker_start(&fair, CPU, SCHED_OTHER, -1);
	worker_start(&hog, CPU, SCHED_FIFO, -1);
	sleep_ms(500);
	for (i = 0; i < GUARD_TRIES && most < 35 * MS; i++) {
		ran = time_of(&fair);
		sleep_ms(1000);
		ran = time_of(&fair) - ran;
		all += ran;
		if (ran > most)
			most = ran;
	}
	printf("# in %d s fair tasks ran for %lld ms, at most %lld in one\n", i,
	       all / MS, most / MS);
	guest_check(most >= 35 * MS && !hog.err, "fair-has-its-turn",
		    "%lld ms in a second, policy: %s", most / MS,
		    strerror(hog.err));
	guest_check(stat_of(CPU, "stops") > 10, "turns-under-stops", "%lld",
		    stat_of(CPU, "stops"));
	/* First, for a spinning FIFO task keeps RCU from ending on PREEMPT_RT. */
	worker_stop(&hog);
	worker_stop(&fair);
	must_limit(CPU, "off");
}

int main(void)
{
	guard_reset();
	pin_self(0);
	real_time_first();
	if (access("/sys/kernel/debug/sched/fair_server", F_OK))
		printf("# this kernel has no fair server\n");
	else
		fair_has_its_turn();
	guard_explain();
	guard_reset();
	return guest_exit();
}
