// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * waits: how long single page faults take.
 *
 * Touches PAGES anonymous 4 KiB pages once, and prints how many faults took how long, by
 * the CPU's time stamp counter. In a guest under `-icount shift=0` a tick of it is an
 * instruction of all CPUs:
 *
 *	waits [-p PAGES] [-w TICKS] [-j TASKS_FILE]
 *
 * -j joins a group first, by writing to its `tasks` file. -w: what a warm fault takes; the
 * median if it is not given.
 *
 * Output, one line: pages, the median, how many took more than 2, 4, 16 and 64 times
 * the warm one, the thousandth longest of 1000 (p999), the longest, and the sum.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


static unsigned long page;	/* bytes of one */
static unsigned long pages = 4096;
static unsigned long warm;

static void die(const char *what)
{
	fprintf(stderr, "waits: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	unsigned long t;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
#error "no counter is known here"
#endif
}

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	madvise(at, bytes, MADV_NOHUGEPAGE);
	return at;
}

static int ascending(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

static unsigned long above(const unsigned int *took, unsigned long limit)
{
	unsigned long i = pages;

	while (i && took[i - 1] > limit)
		i--;
	return pages - i;
}

static void join(const char *file)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, "0\n", 2) != 2)
		die(file);
	close(fd);
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || !n || n > 1ul << 24) {
		fprintf(stderr, "waits: %s: expected a number from 1 to %lu\n",
			text, 1ul << 24);
		exit(2);
	}
	return n;
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:w:j:")) != -1) {
		switch (c) {
		case 'p':
			pages = number(optarg);
			break;
		case 'w':
			warm = number(optarg);
			break;
		case 'j':
			join(optarg);
			break;
		default:
			fprintf(stderr, "usage: waits [-p PAGES] [-w TICKS] [-j TASKS_FILE]\n");
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long i, begin, before, now;
	volatile char *at;
	unsigned int *took;

	page = sysconf(_SC_PAGESIZE);
	options(argc, argv);
	took = map(pages * sizeof(*took));
	at = map(pages * page);
	for (i = 0; i < pages; i++)
		took[i] = 1;	/* no fault of ours later */
	begin = ticks();
	for (i = 0; i < pages; i++) {
		before = ticks();
		at[i * page] = 1;
		now = ticks() - before;
		took[i] = now > ~0u ? ~0u : now;
	}
	now = ticks() - begin;
	qsort(took, pages, sizeof(*took), ascending);
	if (!warm)
		warm = took[pages / 2];
	printf("pages %lu median %u x2 %lu x4 %lu x16 %lu x64 %lu p999 %u longest %u sum %lu\n",
	       pages, took[pages / 2], above(took, 2 * warm),
	       above(took, 4 * warm), above(took, 16 * warm),
	       above(took, 64 * warm), took[pages - 1 - pages / 1000],
	       took[pages - 1], now);
	return 0;
}
