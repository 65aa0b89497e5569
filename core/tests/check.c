// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The test runner; see check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include "check.h"

static struct test *tests;
static unsigned int passed, bad;
static jmp_buf failed;
static u64 state;

void test_register(struct test *test)
{
	struct test **at = &tests;

	while (*at)
		at = &(*at)->next;
	*at = test;
}

_Noreturn void test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("%s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	longjmp(failed, 1);
}

/* splitmix64 */
u64 rnd(void)
{
	u64 z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

u64 below(u64 n)
{
	return rnd() % n;
}

bool once_in(u64 n)
{
	return !below(n);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void run(struct test *test, u64 seed)
{
	state = seed;
	if (setjmp(failed)) {
		printf("FAILED %s (again: SEED=%llu)\n", test->name,
		       (unsigned long long)seed);
		bad++;
		return;
	}
	test->run();
	passed++;
}

int main(int argc, char **argv)
{
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	double start = now();
	struct test *test;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	for (test = tests; test; test = test->next)
		run(test, seed);
	printf("%u passed, %u failed (%.1f s)\n", passed, bad, now() - start);
	return bad != 0;
}
