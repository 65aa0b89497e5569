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
#define Q 20			/* lines of the taker in a period */
#define PERIOD_US 40000		/* time enough for a slow CPU to use 2 Q */
#define RATE(lines) ((lines) * 4096ll * 1000000 / PERIOD_US)

static struct worker a, b;

/* Both, in a second. */
static void look(struct usage *taker, struct usage *giver)
{
	*taker = usage_so_far(TAKER, "used_bytes");
	*giver = usage_so_far(GIVER, "used_bytes");
	sleep_ms(1000);
	usage_since(taker, TAKER, "used_bytes");
	usage_since(giver, GIVER, "used_bytes");
}

/* Lines used per period, in tenths. */
static int tenths(const struct usage *u)
{
	return u->used / 4096 * 10 / (u->periods ?: 1);
}

/*
 * True: no more than so many lines a period. What is looked at begins and ends
 * within periods, and so may see one budget more.
 */
static bool kept(const struct usage *u, int lines)
{
	return u->used / 4096 <= lines * (u->periods + 1);
}

/* True: it used its whole budget in nine of ten periods, or more. */
static bool wants_all(const struct usage *u)
{
	return u->periods && u->stops * 10 >= u->periods * 9;
}

/* As look(), once both want all that they get: a rule shows only then. */
static void look_when_both_want(struct usage *taker, struct usage *giver)
{
	int tries = GUARD_TRIES;

	do {
		look(taker, giver);
		printf("# of %lld and %lld periods %lld and %lld used up\n",
		       taker->periods, giver->periods, taker->stops,
		       giver->stops);
	} while (!(wants_all(taker) && wants_all(giver)) && --tries);
}

/* 1 : 2, as their rates are. */
static bool in_proportion(const struct usage *taker, const struct usage *giver)
{
	return giver->used * 10 > taker->used * 17 && giver->used * 10 < taker->used * 23;
}

static void rates(int one, int two, const char *more)
{
	char text[64];

	snprintf(text, sizeof(text), "%lld %s", RATE(two), more);
	must_limit(GIVER, text);
	snprintf(text, sizeof(text), "%lld %s", RATE(one), more);
	must_limit(TAKER, text);
	sleep_ms(200);
}

int main(void)
{
	long long donated, reclaimed, restarts;
	struct usage taker, giver;
	char text[96];
	int one, two;

	guard_reset();
	pin_self(0);
	snprintf(text, sizeof(text),
		 "event page-faults\nperiod_us %d\nr_min 100000000\nq_min 4",
		 PERIOD_US);
	settings(text);

	/* The giver uses little: the taker gets what it leaves, or not. */
	worker_start(&a, TAKER, SCHED_OTHER, 0);
	worker_await(&a);
	rates(Q, 2 * Q, "reclaim=0");
	look(&taker, &giver);
	guest_check(kept(&taker, Q), "no-reclaim",
		    "%d tenths of a line a period, not %d", tenths(&taker),
		    10 * Q);
	rates(Q, 2 * Q, "reclaim=1");
	donated = stat_of(GIVER, "donated_bytes");
	reclaimed = stat_of(TAKER, "reclaimed_bytes");
	look(&taker, &giver);
	for (int i = 1; i < GUARD_TRIES && tenths(&taker) <= 10 * Q * 11 / 10; i++)
		look(&taker, &giver);
	donated = stat_of(GIVER, "donated_bytes") - donated;
	reclaimed = stat_of(TAKER, "reclaimed_bytes") - reclaimed;
	one = tenths(&taker);
	guest_check(one > 10 * Q * 11 / 10 && kept(&taker, 3 * Q),
		    "reclaim", "%d tenths of a line a period, of %d", one,
		    30 * Q);
	guest_check(donated && reclaimed && reclaimed <= donated * 11 / 10,
		    "reclaim-counted", "%lld given, %lld taken", donated,
		    reclaimed);

	/* Both want more. */
	worker_start(&b, GIVER, SCHED_OTHER, 0);
	worker_await(&b);
	rates(Q, 2 * Q, "reclaim=0");
	look(&taker, &giver);
	guest_check(kept(&taker, Q) && kept(&giver, 2 * Q), "both-kept",
		    "%d and %d tenths", tenths(&taker), tenths(&giver));
	settings("sharing spare");
	sleep_ms(100);
	look_when_both_want(&taker, &giver);
	one = tenths(&taker);
	two = tenths(&giver);
	guest_check(one + two > 30 * Q * 12 / 10, "spare",
		    "%d and %d tenths of a line a period", one, two);
	guest_check(stat_of(TAKER, "beyond_bytes") > 0, "spare-counted", "%lld",
		    stat_of(TAKER, "beyond_bytes"));

	settings("sharing proportional");
	sleep_ms(100);
	/* On a busy host the giver may be too slow for what restarts add to its budget. */
	for (int i = 0; i < GUARD_TRIES; i++) {
		restarts = guard_stat("restarts");
		look_when_both_want(&taker, &giver);
		restarts = guard_stat("restarts") - restarts;
		if (in_proportion(&taker, &giver))
			break;
	}
	guest_check(restarts > 10, "proportional-restarts", "%lld", restarts);
	guest_check(in_proportion(&taker, &giver), "proportional",
		    "%lld and %lld bytes, not 1 : 2", taker.used, giver.used);
	printf("# proportional: 1 : %.2f, %lld restarts\n",
	       (double)giver.used / taker.used, restarts);

	/* Weights share out all of r_min. */
	must_limit(TAKER, "off");
	must_limit(GIVER, "off");
	settings("sharing none\nr_min 4096000");	/* 40 lines a period */
	must_limit(TAKER, "weight=1 reclaim=0");
	must_limit(GIVER, "weight=3 reclaim=0");
	sleep_ms(200);
	look_when_both_want(&taker, &giver);
	one = tenths(&taker);
	two = tenths(&giver);
	/* One line each comes on top. */
	guest_check(kept(&taker, 11) && kept(&giver, 31) && two > 2 * one,
		    "weights",
		    "%d and %d tenths of a line a period, of 100 and 300", one,
		    two);
	guard_explain();
	worker_stop(&a);
	worker_stop(&b);
	guard_reset();
	return guest_exit();
}
