// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Judges conflict classes that `soloist map detect` found in this very guest,
 * by a measurement of its own: no code is shared with the detector, and it is
 * judged otherwise. A line is read at once with another, and, in turn with that,
 * with random ones: that is its control, and what counts is the difference of
 * the means. What is called slow follows from random pairs alone. (Reading one
 * after the other and timing the second shows nothing where the controller
 * has closed the row by then.)
 *
 *   conflicts MIB SECONDS <classes
 *
 * Input: `page SIZE`, `function 6^13` and `class NUMBER FIRST LAST` (guest
 * physical pages). Lines are of one bank number when class and functions say
 * so. It agrees where pairs of one class conflict four times as often as others
 * at the very least. Exit: 0 agrees, 1 does not, 2 misused, 3 nothing can be told.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HUGE (2ul << 20)
#define LINE 64
#define ROUNDS 20		/* readings of a pair and its control */
#define NULL_PAIRS 3000		/* random pairs that say what noise is */
#define MAX_PAGES (1 << 16)
#define MAX_CLASSES (1 << 16)
#define MAX_FUNCTIONS 32

struct page {
	char *at;
	uint64_t guest;
	long class;
};

struct tally {
	long conflicts, pairs;
};

static uint64_t page_size = 4096;
static uint64_t function[MAX_FUNCTIONS];
static int n_functions;
static struct class {
	long number;
	uint64_t start, end;
} class[MAX_CLASSES];
static long n_classes, n_listed;
static struct page page[MAX_PAGES];
static long n_pages;
static char *all;
static size_t all_bytes;
static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

#if defined(__x86_64__)
#include <x86intrin.h>

/* Time of both, read from memory at once. */
static double both(const char *a, const char *b)
{
	uint64_t start, end;
	unsigned int cpu;

	_mm_clflush(a);
	_mm_clflush(b);
	_mm_mfence();
	start = _rdtsc();
	_mm_lfence();
	*(const volatile char *)b;
	*(const volatile char *)a;
	end = __rdtscp(&cpu);
	_mm_lfence();
	return end - start;
}
#else
#error "x86-64 only: the clock of others is too coarse for one read"
#endif

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *values, int n, double q)
{
	qsort(values, n, sizeof(*values), ascending);
	return values[(int)(q * (n - 1))];
}

static char *random_line(void)
{
	return all + random64() % (all_bytes / LINE) * LINE;
}

/* Mean of the lower half: the clock has steps, and interrupts are long. */
static double typical(double *values)
{
	double sum = 0;
	int i;

	qsort(values, ROUNDS, sizeof(*values), ascending);
	for (i = 0; i < ROUNDS / 2; i++)
		sum += values[i];
	return sum / (ROUNDS / 2);
}

/* By how much `b` is slower with `a` than with random lines. */
static double slower(const char *a, const char *b)
{
	double with[ROUNDS], without[ROUNDS];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		without[i] = both(random_line(), b);
		with[i] = both(a, b);
	}
	return typical(with) - typical(without);
}

/* What is called a conflict: far out of what random pairs do. */
static double threshold(void)
{
	static double value[NULL_PAIRS];
	double high, middle;
	int i;

	for (i = 0; i < NULL_PAIRS; i++)
		value[i] = slower(random_line(), random_line());
	middle = quantile(value, NULL_PAIRS, 0.5);
	high = quantile(value, NULL_PAIRS, 0.84);
	printf("random pairs: %.0f, one standard deviation %.0f cycles\n",
	       middle, high - middle);
	return middle + 3 * fmax(high - middle, 1);
}

/* Slow each of several times, whichever is read first. */
static int is_conflict(const char *a, const char *b, double limit)
{
	int i;

	for (i = 0; i < 3; i++)
		if (slower(a, b) < limit || slower(b, a) < limit)
			return 0;
	return 1;
}

/* `6^13` as a mask. */
static uint64_t mask(const char *bits)
{
	uint64_t value = 0;

	while (*bits >= '0' && *bits <= '9') {
		char *end;

		value |= 1ull << (strtoul(bits, &end, 10) & 63);
		bits = *end == '^' ? end + 1 : end;
	}
	return value;
}

static void read_classes(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		struct class *c = &class[n_classes];

		if (sscanf(line, "page %lu", &page_size) == 1)
			continue;
		if (n_functions < MAX_FUNCTIONS &&
		    !strncmp(line, "function ", 9)) {
			function[n_functions++] = mask(line + 9);
		} else if (n_classes < MAX_CLASSES &&
			   sscanf(line, "class %ld %lx %lx", &c->number,
				  &c->start, &c->end) == 3) {
			c->end += page_size;
			n_listed += (c->end - c->start) / page_size;
			n_classes++;
		} else {
			fprintf(stderr, "conflicts: not understood: %s", line);
			exit(2);
		}
	}
}

/* Maps memory and finds the pages that have a class. */
static void find_pages(size_t bytes)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry, guest;
	size_t at;
	long i;

	all = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED || pagemap < 0) {
		perror("conflicts");
		exit(2);
	}
	all = (char *)(((uintptr_t)all + HUGE - 1) & ~(HUGE - 1));
	all_bytes = bytes;
	madvise(all, bytes, MADV_HUGEPAGE);
	for (at = 0; at < bytes; at += 4096)
		all[at] = 1;
	for (at = 0; at < bytes && n_pages < MAX_PAGES; at += page_size) {
		off_t where = (uintptr_t)(all + at) / 4096 * 8;

		if (pread(pagemap, &entry, 8, where) != 8)
			break;
		guest = (entry & ((1ull << 55) - 1)) << 12;
		for (i = 0; guest && i < n_classes; i++)
			if (guest >= class[i].start && guest < class[i].end)
				page[n_pages++] = (struct page){
					all + at, guest, class[i].number,
				};
	}
	close(pagemap);
}

/* What tells banks apart, as the classes have it. */
static uint64_t bank(const struct page *p, uint64_t offset)
{
	uint64_t value = p->class;
	int i;

	for (i = 0; i < n_functions; i++)
		value ^= (uint64_t)__builtin_parityl(function[i] & offset) << i;
	return value;
}

static double rate(struct tally t)
{
	return t.pairs ? (double)t.conflicts / t.pairs : 0;
}

/* Wilson's interval, 95 %. */
static double bound(struct tally t, int upper)
{
	double z = 1.96, n = t.pairs ? t.pairs : 1, p = rate(t);
	double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
	double low = p + z * z / (2 * n) - half;

	if (upper)
		low += 2 * half;
	return low / (1 + z * z / n);
}

static void say(const char *what, struct tally t)
{
	printf("%s: %ld of %ld pairs conflict, %.3f %% (95 %%: %.3f to %.3f)\n",
	       what, t.conflicts, t.pairs, 100 * rate(t), 100 * bound(t, 0),
	       100 * bound(t, 1));
}

int main(int argc, char **argv)
{
	struct tally within = { 0, 0 }, across = { 0, 0 }, agree;
	double limit, end;
	long tries;

	if (argc != 3 || atol(argv[1]) <= 0 || atof(argv[2]) <= 0) {
		fprintf(stderr, "use: conflicts MIB SECONDS <classes\n");
		return 2;
	}
	read_classes();
	find_pages((size_t)atol(argv[1]) << 20);
	printf("%ld of %ld pages could be had again\n", n_pages, n_listed);
	if (n_pages < 16)
		return 3;
	end = now() + atof(argv[2]);
	limit = threshold();
	for (tries = 0; now() < end; tries++) {
		struct page *p = &page[random64() % n_pages];
		struct page *q = &page[random64() % n_pages];
		uint64_t a = random64() % page_size / LINE * LINE;
		uint64_t b = random64() % page_size / LINE * LINE;
		int same = bank(p, a) == bank(q, b);
		struct tally *t = same ? &within : &across;

		/* As many of either, though most pairs are of two banks. */
		if (p == q || (!same && across.pairs > 2 * within.pairs))
			continue;
		t->pairs++;
		t->conflicts += is_conflict(p->at + a, q->at + b, limit);
	}
	say("of one class", within);
	say("of two      ", across);
	if (within.conflicts < 5) {
		printf("too few conflicts to tell\n");
		return 3;
	}
	agree.conflicts = within.conflicts;
	agree.pairs = within.conflicts + across.conflicts;
	printf("%ld of %ld conflicts lie in one class (95 %%: at least %.2f %%), as %.0f %% of the pairs do\n",
	       agree.conflicts, agree.pairs, 100 * bound(agree, 0),
	       100. * within.pairs / (within.pairs + across.pairs));
	return bound(within, 0) > 4 * bound(across, 1) ? 0 : 1;
}
