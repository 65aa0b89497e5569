/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A CPU with a reservation gets that, to within 1 %, and one without is left
 * alone.
 */
#define _GNU_SOURCE
#include "guard.h"

#define PERIOD_US 10000
#define PER_PERIOD 40		/* page faults */

static struct worker w;

static long faults_in(long ms)
{
	long before = w.done;

	sleep_ms(ms);
	return w.done - before;
}

int main(void)
{
	char rate[32];
	long free_rate, got, want;
	long long from, ns, periods, used;

	guard_reset();
	pin_self(0);
	worker_start(&w, 1, SCHED_OTHER, 0);
	sleep_ms(100);
	settings("event page-faults\nperiod_us 10000\nr_min 100000000");
	free_rate = faults_in(300);
	guest_check(guard_stat("periods") <= 0 || guard_stat("master") == -1,
		    "no-timer-without-limits", "timer on CPU %lld",
		    guard_stat("master"));
	guest_check(free_rate > 2 * 300 * PER_PERIOD / 10, "traffic",
		    "only %ld faults in 300 ms", free_rate);

	snprintf(rate, sizeof(rate), "%lld reclaim=0",
		 PER_PERIOD * 4096ll * 1000000 / PERIOD_US);
	must_limit(1, rate);
	sleep_ms(100);
	from = now_ns();
	periods = stat_of(1, "periods");
	used = stat_of(1, "used_bytes");
	got = faults_in(1500);
	periods = stat_of(1, "periods") - periods;
	used = stat_of(1, "used_bytes") - used;
	ns = now_ns() - from;
	want = ns / 1000 / PERIOD_US * PER_PERIOD;
	guest_check(labs(got - want) <= want / 100 + PER_PERIOD, "rate",
		    "%ld faults in %lld ms, not %ld; periods %lld, late %lld",
		    got, ns / 1000000, want, periods, guard_stat("late"));
	guest_check(llabs(used / 4096 - periods * PER_PERIOD) <=
		    periods * PER_PERIOD / 100, "each-period",
		    "%lld lines used in %lld periods of %d", used / 4096,
		    periods, PER_PERIOD);
	printf("# %ld of %ld faults, %lld periods, late %lld, free rate %ld/s\n",
	       got, want, periods, guard_stat("late"), free_rate * 10 / 3);
	guest_check(stat_of(1, "stops") > periods / 2, "stops", "%lld",
		    stat_of(1, "stops"));
	guest_check(stat_of(1, "stopped_ns") > ns / 4, "stopped-time",
		    "%lld of %lld ns", stat_of(1, "stopped_ns"), ns);

	must_limit(1, "off");
	got = faults_in(300);
	guest_check(got > free_rate / 2, "off", "%ld faults, %ld before", got,
		    free_rate);
	guest_check(stat_of(1, "ready") == 0 && guard_stat("master") == -1,
		    "off-for-good", "%s", guest_read("guard/stats"));
	worker_stop(&w);
	guard_reset();
	return guest_exit();
}
