// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fault: what a page fault and a free cost.
 *
 * Maps PAGES anonymous 4 KiB pages, touches each once, unmaps them, several
 * rounds, and prints the median of both per page, in nanoseconds of the
 * monotonic clock. In a guest under `-icount shift=0` with one CPU these are
 * instructions, to the last digit:
 *
 *	fault [-p PAGES] [-r ROUNDS] [-t THREADS] [-j TASKS_FILE]
 *
 * -j joins a group first, by writing to its `tasks` file. -t faults from that
 * many threads at once, each on memory of its own; the time is then the wall
 * time of all of them over the pages of one.
 *
 * Output, one line: pages rounds threads first_fault fault free. `first_fault`
 * is that of the first round, which may have to fill lists.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 1000
#define MAX_THREADS 64

static unsigned long page;	/* bytes of one */
static unsigned long pages = 4096;
static unsigned long rounds = 9;
static unsigned long threads = 1;

static void die(const char *what)
{
	fprintf(stderr, "fault: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static volatile char *map(void)
{
	void *at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	/* Small pages for all, or the stock kernel would fault 2 MiB at once. */
	madvise(at, pages * page, MADV_NOHUGEPAGE);
	return at;
}

static void touch(volatile char *at)
{
	unsigned long i;

	for (i = 0; i < pages; i++)
		at[i * page] = 1;
}

static pthread_barrier_t barrier;
static volatile char *area[MAX_THREADS];

static void *worker(void *arg)
{
	unsigned long round;

	for (round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		touch(*(volatile char **)arg);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* One round: seconds of faulting and of freeing, per page. */
static void round_of(double *fault, double *free)
{
	unsigned long i;
	double t;

	for (i = 0; i < threads; i++)
		area[i] = map();
	t = now();
	if (threads > 1) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	} else {
		touch(area[0]);
	}
	*fault = (now() - t) / pages;
	t = now();
	for (i = 0; i < threads; i++)
		munmap((void *)area[i], pages * page);
	*free = (now() - t) / pages / threads;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, rounds, sizeof(*v), ascending);
	return v[rounds / 2];
}

static void join(const char *file)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, "0\n", 2) != 2)
		die(file);
	close(fd);
}

static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || !n || n > max) {
		fprintf(stderr, "fault: %s: expected a number from 1 to %lu\n",
			text, max);
		exit(2);
	}
	return n;
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:r:t:j:")) != -1) {
		switch (c) {
		case 'p':
			pages = number(optarg, 1ul << 24);
			break;
		case 'r':
			rounds = number(optarg, MAX_ROUNDS);
			break;
		case 't':
			threads = number(optarg, MAX_THREADS);
			break;
		case 'j':
			join(optarg);
			break;
		default:
			fprintf(stderr, "usage: fault [-p PAGES] [-r ROUNDS] [-t THREADS] [-j TASKS_FILE]\n");
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	static double fault[MAX_ROUNDS], freed[MAX_ROUNDS];
	pthread_t thread[MAX_THREADS];
	unsigned long i;
	double first;

	page = sysconf(_SC_PAGESIZE);
	options(argc, argv);
	if (threads > 1) {
		pthread_barrier_init(&barrier, NULL, threads + 1);
		for (i = 0; i < threads; i++)
			if (pthread_create(&thread[i], NULL, worker,
					   (void *)&area[i]))
				die("pthread_create");
	}
	for (i = 0; i < rounds; i++)
		round_of(&fault[i], &freed[i]);
	for (i = 0; threads > 1 && i < threads; i++)
		pthread_join(thread[i], NULL);
	first = fault[0];
	printf("pages %lu rounds %lu threads %lu first_fault %.1f fault %.1f free %.1f\n",
	       pages, rounds, threads, first, median(fault), median(freed));
	return 0;
}
