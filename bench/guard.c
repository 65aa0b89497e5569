// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * guard: how long a fixed piece of work takes, which touches no memory but one
 * page now and then: what is added to it are interrupts. Prints nanoseconds, the
 * least of five times; in a guest under `-icount shift=0` with one CPU these are
 * instructions.
 *
 *	guard TURNS [EVERY]
 *
 * EVERY so many turns (0: never) a page is given back and touched: a page fault.
 */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void work(long turns, long every, volatile char *page)
{
	for (volatile long n = 0; n < turns; n++) {
		if (!every || n % every)
			continue;
		madvise((void *)page, 4096, MADV_DONTNEED);
		*page = 1;
	}
}

int main(int argc, char **argv)
{
	long turns = argc > 1 ? atol(argv[1]) : 20000000;
	long every = argc > 2 ? atol(argv[2]) : 0;
	long long least = 0;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED) {
		perror("guard: mmap");
		return 1;
	}
	for (int i = 0; i < 5; i++) {
		long long from = now();

		work(turns, every, page);
		from = now() - from;
		if (!least || from < least)
			least = from;
	}
	printf("%lld\n", least);
	return 0;
}
