// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A periodic program: periodic PERIOD_US WORK_US JOBS. Each job takes so much
 * processor time; the next begins a period after this one should have begun.
 * It says when it is past its own beginning.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec at = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

static void work(int64_t ns)
{
	int64_t until = now_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

int main(int argc, char **argv)
{
	int64_t period_ns, work_ns, next, jobs;

	if (argc != 4) {
		fprintf(stderr, "usage: %s PERIOD_US WORK_US JOBS\n", argv[0]);
		return 2;
	}
	period_ns = atoll(argv[1]) * 1000;
	work_ns = atoll(argv[2]) * 1000;
	puts("begun");
	fflush(stdout);
	next = now_ns(CLOCK_MONOTONIC);
	for (jobs = atoll(argv[3]); jobs > 0; jobs--) {
		next += period_ns;
		sleep_until(next);
		work(work_ns);
	}
	return 0;
}
