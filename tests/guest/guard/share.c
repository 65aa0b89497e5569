/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who gets what is not used: reclaiming, spare and proportional sharing. The
 * rules themselves are tested in core/; here, that counters, calls and the
 * timer carry them out.
 */
#define _GNU_SOURCE
#include "guard.h"

/*
 * The timer is CPU 1's, which so gives before CPU 2 begins: an emulator that
 * runs one CPU after the other would let the taker use up its own first.
 */
#define GIVER 1
#define TAKER 2
/*
 * A CPU that was stopped has other threads' work to make up for (PREEMPT_RT:
 * RCU's, interrupts), which takes an emulator seconds at times. While one makes
 * less than half of the traffic that is reserved for it, look again.
 */
#define TRIES 16
#define Q 20			/* lines of the taker in a period of 10 ms */

static struct worker a, b;

/* Lines that taker and giver used per period, in tenths; some time of them. */
static void usage(int *one, int *two)
{
	long long p = stat_of(TAKER, "periods"), q = stat_of(GIVER, "periods");
	long long u = stat_of(TAKER, "used_bytes"), v = stat_of(GIVER, "used_bytes");

	sleep_ms(500);
	p = stat_of(TAKER, "periods") - p;
	q = stat_of(GIVER, "periods") - q;
	*one = (stat_of(TAKER, "used_bytes") - u) / 4096 * 10 / (p ?: 1);
	*two = (stat_of(GIVER, "used_bytes") - v) / 4096 * 10 / (q ?: 1);
}

/* As usage(), once both make at least so much. */
static void usage_of_both(int *one, int *two, int least_one, int least_two)
{
	int tries = TRIES;

	do
		usage(one, two);
	while ((*one < least_one || *two < least_two) && --tries);
}

static void rates(int one, int two, const char *more)
{
	char text[64];

	snprintf(text, sizeof(text), "%lld %s", two * 409600ll, more);
	must_limit(GIVER, text);
	snprintf(text, sizeof(text), "%lld %s", one * 409600ll, more);
	must_limit(TAKER, text);
	sleep_ms(100);
}

int main(void)
{
	long long donated, reclaimed, restarts;
	int one, two;

	guard_reset();
	pin_self(0);
	settings("event page-faults\nperiod_us 10000\nr_min 100000000\nq_min 4");

	/* The giver uses little: the taker gets what it leaves, or not. */
	worker_start(&a, TAKER, SCHED_OTHER, 0);
	worker_await(&a);
	rates(Q, 2 * Q, "reclaim=0");
	usage(&one, &two);
	guest_check(one <= 10 * Q * 103 / 100, "no-reclaim",
		    "%d tenths of a line a period, not %d", one, 10 * Q);
	rates(Q, 2 * Q, "reclaim=1");
	donated = stat_of(GIVER, "donated_bytes");
	reclaimed = stat_of(TAKER, "reclaimed_bytes");
	usage(&one, &two);
	for (int i = 0; i < 8 && one <= 10 * Q * 11 / 10; i++)
		usage(&one, &two);
	donated = stat_of(GIVER, "donated_bytes") - donated;
	reclaimed = stat_of(TAKER, "reclaimed_bytes") - reclaimed;
	guest_check(one > 10 * Q * 11 / 10 && one <= 30 * Q * 103 / 100,
		    "reclaim", "%d tenths of a line a period, of %d", one,
		    30 * Q);
	guest_check(donated && reclaimed && reclaimed <= donated * 11 / 10,
		    "reclaim-counted", "%lld given, %lld taken", donated,
		    reclaimed);

	/* Both want more. */
	worker_start(&b, GIVER, SCHED_OTHER, 0);
	worker_await(&b);
	rates(Q, 2 * Q, "reclaim=0");
	usage(&one, &two);
	guest_check(one <= 10 * Q * 103 / 100 && two <= 20 * Q * 103 / 100,
		    "both-kept", "%d and %d tenths", one, two);
	settings("sharing spare");
	sleep_ms(50);
	usage_of_both(&one, &two, 5 * Q, 10 * Q);
	guest_check(one + two > 30 * Q * 12 / 10, "spare",
		    "%d and %d tenths of a line a period", one, two);
	guest_check(stat_of(TAKER, "beyond_bytes") > 0, "spare-counted", "%lld",
		    stat_of(TAKER, "beyond_bytes"));

	settings("sharing proportional");
	sleep_ms(50);
	long long u, v, least = 60 * Q / 2 * 4096;	/* 60 periods */
	int tries = TRIES;

	do {
		restarts = guard_stat("restarts");
		u = stat_of(TAKER, "used_bytes");
		v = stat_of(GIVER, "used_bytes");
		sleep_ms(600);
		restarts = guard_stat("restarts") - restarts;
		u = stat_of(TAKER, "used_bytes") - u;
		v = stat_of(GIVER, "used_bytes") - v;
	} while ((u < least || v < 2 * least) && --tries);
	guest_check(restarts > 10, "proportional-restarts", "%lld", restarts);
	guest_check(v * 10 > u * 17 && v * 10 < u * 23, "proportional",
		    "%lld and %lld bytes, not 1 : 2", u, v);
	printf("# proportional: 1 : %.2f, %lld restarts\n", (double)v / u,
	       restarts);

	/* Weights share out all of r_min. */
	must_limit(TAKER, "off");
	must_limit(GIVER, "off");
	settings("sharing none\nr_min 16384000");	/* 40 lines a period */
	must_limit(TAKER, "weight=1 reclaim=0");
	must_limit(GIVER, "weight=3 reclaim=0");
	sleep_ms(100);
	usage_of_both(&one, &two, 50, 150);
	guest_check(one <= 115 && two <= 310 && two > 2 * one, "weights",
		    "%d and %d tenths of a line a period, of 100 and 300", one,
		    two);
	guard_explain();
	worker_stop(&a);
	worker_stop(&b);
	guard_reset();
	return guest_exit();
}
