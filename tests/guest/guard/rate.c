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

#define MUCH (2 * PER_PERIOD * (1000000 / PERIOD_US))	/* faults a second */

/* The best of some tries: an emulator may let other CPUs go first for long. */
static long free_rate(void)
{
	long best = 0;

	for (int i = 0; i < 6 || (i < 60 && best <= MUCH); i++) {
		long got = faults_in(50) * 20;

		if (got > best)
			best = got;
	}
	return best;
}

/*
 * Part in 1000 that what was used is off from what was reserved, < 0: less. A
 * window begins and ends within periods, so that it may see one budget more.
 */
struct window {
	long of_budget;		/* of the periods begun */
	long of_time;
	long over;		/* faults beyond the budgets of the periods */
};

static struct window window(long ms)
{
	struct usage u = usage_so_far(1, "used_bytes");
	long long from = now_ns(), ns, want, used;
	struct window r;

	sleep_ms(ms);
	usage_since(&u, 1, "used_bytes");
	ns = now_ns() - from;
	used = u.used / 4096;
	want = ns / 1000 * PER_PERIOD / PERIOD_US;
	r.over = used - (u.periods + 1) * PER_PERIOD;
	r.of_budget = (used - u.periods * PER_PERIOD) * 1000 /
		      (u.periods * PER_PERIOD);
	r.of_time = (used - want) * 1000 / want;
	return r;
}

/*
 * Never more than reserved; and no less, when the guest was given its time: an
 * emulator that stands still for a while loses periods, or traffic in them.
 */
static void steady(void)
{
	long most = -PER_PERIOD, budget = -1000, time = -1000;

	for (int i = 0; i < 12 && (budget < -10 || labs(time) > 10); i++) {
		struct window r = window(300);

		if (r.over > most)
			most = r.over;
		if (labs(r.of_budget) <= labs(budget))
			budget = r.of_budget;
		if (labs(r.of_time) <= labs(time))
			time = r.of_time;
	}
	guest_check(most <= 0, "never-more", "%ld faults over", most);
	guest_check(labs(budget) <= 10, "each-period", "%ld per mille off",
		    budget);
	guest_check(labs(time) <= 10, "rate", "%ld per mille off", time);
	printf("# per mille off: %ld of budgets, %ld of time; late %lld\n",
	       budget, time, guard_stat("late"));
}

int main(void)
{
	char rate[32];
	long before, after;

	guard_reset();
	pin_self(0);
	worker_start(&w, 1, SCHED_OTHER, 0);
	worker_await(&w);
	settings("event page-faults\nperiod_us 10000\nr_min 100000000");
	before = free_rate();
	guest_check(guard_stat("master") == -1, "no-timer-without-limits",
		    "timer on CPU %lld", guard_stat("master"));
	guest_check(before > MUCH, "traffic",
		    "only %ld faults a second", before);
	guard_explain();

	snprintf(rate, sizeof(rate), "%lld reclaim=0",
		 PER_PERIOD * 4096ll * 1000000 / PERIOD_US);
	must_limit(1, rate);
	sleep_ms(50);
	steady();
	guest_check(stat_of(1, "stops") > 10, "stops", "%lld",
		    stat_of(1, "stops"));
	guest_check(stat_of(1, "stopped_ns") > 100 * MS, "stopped-time",
		    "%lld ns", stat_of(1, "stopped_ns"));

	must_limit(1, "off");
	after = free_rate();
	guest_check(after > MUCH, "off",
		    "%ld faults a second, %ld before", after, before);
	guest_check(stat_of(1, "ready") == 0 && guard_stat("master") == -1,
		    "off-for-good", "%s", guest_read("guard/stats"));
	worker_stop(&w);
	guard_reset();
	return guest_exit();
}
