// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Does the kernel's server of ordinary tasks preempt SCHED_FIFO on a core that is mostly idle?
 *
 *   cc -O1 -static -o fair-server experiments/rt/fair-server.c
 *   soloist vm run --cpus 2 --mem 512M --no-module --append isolcpus=1 -- ./fair-server 1 1200
 *
 * fair-server CPU JOBS: a job of 20 ms every 50 ms under SCHED_FIFO, beside an ordinary loop that
 * works for 45 ms and sleeps for 955 to 1045 ms. How long does the loop run while a job does?
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec at = { ns / (1000 * MS), ns % (1000 * MS) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

static void work(int64_t ns)
{
	int64_t until = now_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

/* Sleeps are drawn, always the same ones. */
static void ordinary(void)
{
	uint64_t drawn = 1;

	for (;;) {
		work(45 * MS);
		drawn = drawn * 6364136223846793005ULL + 1442695040888963407ULL;
		sleep_until(now_ns(CLOCK_MONOTONIC) + 955 * MS +
			    (int64_t)((drawn >> 33) % (90 * MS)));
	}
}

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 80 };
	int64_t next, longest = 0, most = 0, beside = 0;
	int jobs, hit = 0;
	clockid_t clock;
	cpu_set_t cpu;
	pid_t loop;

	if (argc != 3) {
		fprintf(stderr, "usage: %s CPU JOBS\n", argv[0]);
		return 2;
	}
	CPU_ZERO(&cpu);
	CPU_SET(atoi(argv[1]), &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu)) {
		perror("sched_setaffinity");
		return 1;
	}
	loop = fork();
	if (!loop)
		ordinary();
	if (loop < 0 || clock_getcpuclockid(loop, &clock) ||
	    sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("a loop beside SCHED_FIFO");
		return 1;
	}
	next = now_ns(CLOCK_MONOTONIC);
	for (jobs = atoi(argv[2]); jobs > 0; jobs--) {
		int64_t before, ran, response;

		next += 50 * MS;
		sleep_until(next);
		before = now_ns(clock);
		work(20 * MS);
		ran = now_ns(clock) - before;
		response = now_ns(CLOCK_MONOTONIC) - next;
		if (response > longest) {
			longest = response;
			beside = ran;
		}
		most = ran > most ? ran : most;
		hit += ran > MS;
	}
	kill(loop, SIGKILL);
	printf("longest response %.1f ms, of which the loop ran for %.1f ms; it ran for more than 1 ms in %d jobs, for %.1f ms at most\n",
	       longest / 1e6, beside / 1e6, hit, most / 1e6);
	return 0;
}
