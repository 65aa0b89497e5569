// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that meet at a barrier after each round; the first has FACTOR times the
 * work of the others.
 *
 *   barrier FACTOR
 *
 * Each has a processor of its own, from 0 on; a scheduler with little time lets two share one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 20
#define BYTES (1 << 20)
#define LINE 64

static pthread_barrier_t barrier;
static long factor;

static void *work(void *arg)
{
	long passes = arg ? 1 : factor;
	volatile char *memory = calloc(1, BYTES);
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET((long)arg, &own);
	if (!memory || pthread_setaffinity_np(pthread_self(), sizeof(own), &own))
		exit(1);
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < ROUNDS; round++) {
		for (long pass = 0; pass < passes; pass++)
			for (int at = 0; at < BYTES; at += LINE)
				memory[at]++;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	factor = argc == 2 ? atol(argv[1]) : 0;
	if (factor < 1) {
		fprintf(stderr, "usage: barrier FACTOR\n");
		return 2;
	}
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 1; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	work(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
