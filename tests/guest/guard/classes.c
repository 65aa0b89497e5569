/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A stopped CPU runs nobody: fair, FIFO and deadline tasks stand still, also
 * those that are late already, and with real-time throttling on (when FIFO
 * tasks make way for fair ones) as well as off (so that a deadline task may be
 * pinned). The CPU may run for 100 ms of each second.
 */
#define _GNU_SOURCE
#include "guard.h"


#define CPU 1
#define N 3

#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

/* Poll until the CPU's `stopped` is @want; false: not within 3 s. */
static bool await(int want)
{
	long long until = now_ns() + 3000 * MS;

	while (stat_of(CPU, "stopped") != want)
		if (now_ns() > until)
			return false;
		else
			sleep_ms(5);
	return true;
}

static void one(const char *what, int policy, const char *runtime)
{
	struct worker w[N];
	long before[N], moved, ran = 0;
	int tries = GUARD_TRIES;
	char name[64];
	bool stopped, still, again;
	long long stops;

	guest_set_kernel(RT_RUNTIME, runtime);
	/*
	 * Before there is a FIFO task: what it preempts in an RCU section keeps RCU
	 * from ending on PREEMPT_RT, where the boost has a lower priority, and a
	 * reservation waits for RCU.
	 */
	must_limit(CPU, "6400000000 reclaim=0");
	/*
	 * The last one faults, but for PREEMPT_RT: there it may be stopped with a zone's lock,
	 * and beside the FIFO task it does not run again to give it back.
	 */
	for (int i = 0; i < N; i++)
		worker_start(&w[i], CPU, i ? SCHED_OTHER : policy,
			     i == 2 && access("/sys/kernel/realtime", F_OK) ? 0 : -1);
	sleep_ms(20);
	/* Within one stop: under an emulator the next may have begun. */
	do {
		stopped = await(0) && await(1);
		stops = stat_of(CPU, "stops");
		sleep_ms(10);
		for (int i = 0; i < N; i++)
			before[i] = w[i].done;
		sleep_ms(250);
		moved = 0;
		for (int i = 0; i < N; i++)
			moved += w[i].done - before[i];
		still = stat_of(CPU, "stopped") == 1 &&
			stat_of(CPU, "stops") == stops;
	} while (!(stopped && still) && --tries);
	snprintf(name, sizeof(name), "%s-stops", what);
	guest_check(stopped && still, name, "stopped %d, still %d; %s", stopped,
		    still, guest_read("guard/cpu1/stats"));
	snprintf(name, sizeof(name), "%s-stands-still", what);
	guest_check(!moved && !w[0].err, name,
		    "%ld turns while stopped, policy: %s", moved,
		    strerror(w[0].err));
	again = await(0);
	sleep_ms(20);
	for (int i = 0; i < N; i++)
		ran += w[i].done - before[i];
	snprintf(name, sizeof(name), "%s-goes-on", what);
	guest_check(again && ran, name, "released %d, %ld turns", again, ran);
	/* First, for the same reason. */
	for (int i = 0; i < N; i++)
		worker_stop(&w[i]);
	must_limit(CPU, "off");
	/*
	 * The deadline task gives its bandwidth back within a period, 100 ms. A
	 * change of sched_rt_runtime_us before that makes 6.12 account for less
	 * than none, and then no CPU may go offline.
	 */
	sleep_ms(200);
}

int main(void)
{
	guard_reset();
	pin_self(0);
	settings("event " RUNNING "\nperiod_us 1000000\nr_min 64000000000");
	one("fifo-throttled", SCHED_FIFO, "950000");
	one("deadline", 6, "-1");
	guest_set_kernel(RT_RUNTIME, "950000");
	guard_reset();
	return guest_exit();
}
