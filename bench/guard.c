// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * guard: how long a fixed piece of work takes, which touches no memory: what is
 * added to it are interrupts. Prints nanoseconds, the least of five times; in a
 * guest under `-icount shift=0` with one CPU these are instructions.
 *
 *	guard TURNS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long turns = argc > 1 ? atol(argv[1]) : 20000000;
	long long least = 0;

	for (int i = 0; i < 5; i++) {
		long long from = now();

		for (volatile long n = 0; n < turns; n++)
			;
		from = now() - from;
		if (!least || from < least)
			least = from;
	}
	printf("%lld\n", least);
	return 0;
}
