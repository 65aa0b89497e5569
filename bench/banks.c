// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Does a neighbour in the same banks hurt more than one in other banks? The core
 * experiment of PALLOC and CAMC, without any module, on any x86 machine.
 *
 * 1. Lines of one huge page are paired with a base line and timed, both flushed: two
 *    rows of one bank take longer. Two clusters must stand clear of each other, twice
 *    over: classes of two independent measurements have to agree.
 * 2. A victim reads lines of the base's bank while a neighbour on another processor
 *    reads other lines of the same bank, lines of other banks, or nothing; in turn,
 *    many rounds. A permutation test over the rounds says how sure the difference is.
 *
 *   banks [--json] [--simulate banks|flat|noise]
 *
 * Exit status: 0 an effect was shown, 3 this machine shows none (and it is said
 * why), 1 it failed. --simulate takes times from a model whose truth is known.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#define HUGE (2ul << 20)
#define LINES 1024	/* that are paired with the base */
#define REPEATS 150	/* of each pair; noise only adds, so the fastest fifth counts */
#define SET 24		/* lines of the victim, and of the neighbour */
#define ROUNDS 60	/* of each condition */
#define READS 4000	/* of the victim in a round */
#define SHUFFLES 20000

enum { ALONE, SAME, OTHER, CONDITIONS };

static const char *simulate;
static uint64_t state = 88172645463325252u;
static char *memory;

static uint64_t random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double normal(void)
{
	double u = (random64() >> 11) * 0x1p-53 + 1e-12, v = (random64() >> 11) * 0x1p-53;

	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* The model's truth: 16 banks, hashed. */
static int true_bank(uint64_t at)
{
	return ((at >> 13) ^ (at >> 17)) & 15;
}

static double read_pair(uint64_t a, uint64_t b)
{
	volatile char *x = memory + a, *y = memory + b;
	unsigned int cpu;
	uint64_t from;

	_mm_clflush((void *)x);
	_mm_clflush((void *)y);
	_mm_mfence();
	from = __rdtscp(&cpu);
	(void)*x;
	(void)*y;
	_mm_lfence();
	return __rdtscp(&cpu) - from;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double pair_time(uint64_t a, uint64_t b)
{
	double times[REPEATS];

	if (simulate) {
		bool conflict = !strcmp(simulate, "banks") && true_bank(a) == true_bank(b) &&
				a >> 13 != b >> 13;

		return 600 + (conflict ? 90 : 0) +
		       normal() * (!strcmp(simulate, "noise") ? 150 : 12);
	}
	for (int i = 0; i < REPEATS; i++)
		times[i] = read_pair(a, b);
	qsort(times, REPEATS, sizeof(*times), by_size);
	return times[REPEATS / 5];
}

/* Two clusters of @times; how many of their standard deviations they are apart. */
static double split(const double *times, int n, double *threshold, int *above)
{
	double sorted[LINES], best = -1;

	memcpy(sorted, times, n * sizeof(*times));
	qsort(sorted, n, sizeof(*sorted), by_size);
	/* A bank is a share of the memory: of 3 to 256 banks. */
	for (int at = n - n / 3; at <= n - n / 256; at++) {
		double low = 0, high = 0, spread = 0;

		for (int i = 0; i < n; i++)
			*(i < at ? &low : &high) += sorted[i];
		low /= at;
		high /= n - at;
		for (int i = 0; i < n; i++)
			spread += pow(sorted[i] - (i < at ? low : high), 2);
		spread = sqrt(spread / n) + 1e-9;
		if ((high - low) / spread > best) {
			best = (high - low) / spread;
			*threshold = (sorted[at - 1] + sorted[at]) / 2;
			*above = n - at;
		}
	}
	return best;
}

struct neighbour {
	const uint64_t *lines;
	int cpu;
	atomic_bool stop, ready;
};

static void *disturb(void *arg)
{
	struct neighbour *n = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	n->ready = true;
	while (!n->stop)
		for (int i = 0; i < SET; i++) {
			_mm_clflush(memory + n->lines[i]);
			(void)*(volatile char *)(memory + n->lines[i]);
		}
	return NULL;
}

/* Cycles that a read of the victim takes beside a neighbour on @lines (NULL: none). */
static double round_time(const uint64_t *victim, const uint64_t *lines, int cpu)
{
	struct neighbour n = { .lines = lines, .cpu = cpu };
	unsigned int core;
	pthread_t thread;
	uint64_t from;
	double took;

	if (simulate) {
		bool same = lines && true_bank(lines[0]) == true_bank(victim[0]);

		return 400 + (lines ? 30 : 0) +
		       (same && !strcmp(simulate, "banks") ? 60 : 0) + normal() * 20;
	}
	if (lines) {
		if (pthread_create(&thread, NULL, disturb, &n))
			return NAN;
		while (!n.ready)
			;
	}
	from = __rdtscp(&core);
	for (int i = 0; i < READS; i++) {
		volatile char *at = memory + victim[i % SET];

		_mm_clflush((void *)at);
		_mm_mfence();
		(void)*at;
		_mm_lfence();
	}
	took = (double)(__rdtscp(&core) - from) / READS;
	n.stop = true;
	if (lines)
		pthread_join(thread, NULL);
	return took;
}

static double median(const double *values, int n)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_size);
	return (sorted[n / 2] + sorted[(n - 1) / 2]) / 2;
}

/* Chance that a difference of medians this large is luck: signs of the rounds'
 * differences are drawn anew. */
static double chance(const double *same, const double *other)
{
	double differences[ROUNDS], drawn[ROUNDS], seen;
	int larger = 0;

	for (int i = 0; i < ROUNDS; i++)
		differences[i] = same[i] - other[i];
	seen = fabs(median(differences, ROUNDS));
	for (int s = 0; s < SHUFFLES; s++) {
		for (int i = 0; i < ROUNDS; i++)
			drawn[i] = random64() >> 63 ? differences[i] : -differences[i];
		larger += fabs(median(drawn, ROUNDS)) >= seen;
	}
	return (larger + 1.0) / (SHUFFLES + 1.0);
}

static bool json;

static int none(const char *why)
{
	if (json)
		printf("{\"shown\": false, \"why\": \"%s\"}\n", why);
	else
		printf("Nothing is shown: %s.\n", why);
	return 3;
}

static long huge_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "AnonHugePages: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

int main(int argc, char **argv)
{
	static double first[LINES], second[LINES], took[CONDITIONS][ROUNDS];
	uint64_t lines[LINES], victim[SET], same[SET], other[SET];
	int above1, above2, agree = 0, n_same = 0, n_other = 0;
	double apart, t1, t2, p, percent;
	int own = -1, cpu = -1;
	cpu_set_t set;
	char *at;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--simulate") && i + 1 < argc) {
			simulate = argv[++i];
		} else {
			fprintf(stderr, "usage: banks [--json] [--simulate banks|flat|noise]\n");
			return 2;
		}
	}
	sched_getaffinity(0, sizeof(set), &set);
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &set)) {
			if (own < 0)
				own = c;
			cpu = c;
		}
	if (cpu == own && !simulate)
		return none("there is no second processor");
	CPU_ZERO(&set);
	CPU_SET(own, &set);
	sched_setaffinity(0, sizeof(set), &set);
	at = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		perror("banks: mmap");
		return 1;
	}
	memory = at + (HUGE - (uintptr_t)at % HUGE) % HUGE;
	madvise(memory, HUGE, MADV_HUGEPAGE);
	memset(memory, 1, HUGE);
	if (!simulate && huge_kib() < 2048)
		return none("the kernel gave no huge page (echo madvise >/sys/kernel/mm/transparent_hugepage/enabled)");
	/* The base is line 0. Neighbours in its row are no conflict: stay away. */
	for (int i = 0; i < LINES; i++)
		lines[i] = 16384 + random64() % ((HUGE - 16384) / 64) * 64;
	for (int i = 0; i < LINES; i++)
		first[i] = pair_time(0, lines[i]);
	for (int i = 0; i < LINES; i++)
		second[i] = pair_time(0, lines[i]);
	apart = fmin(split(first, LINES, &t1, &above1), split(second, LINES, &t2, &above2));
	for (int i = 0; i < LINES; i++)
		agree += (first[i] > t1) && (second[i] > t2);
	if (!json)
		printf("pairs: %d and %d of %d lines are slow beside the base, %d in both measurements; clusters %.1f deviations apart\n",
		       above1, above2, LINES, agree, apart);
	if (apart < 3 || agree < 0.8 * fmax(above1, above2))
		return none("no two clear classes of pairs: the host scatters the page, its banks are closed after each access, or it is too busy");
	for (int i = 0; i < LINES; i++) {
		bool slow = first[i] > t1 && second[i] > t2;
		bool fast = first[i] <= t1 && second[i] <= t2;

		if (slow && n_same < 2 * SET) {
			*(n_same < SET ? &victim[n_same] : &same[n_same - SET]) = lines[i];
			n_same++;
		} else if (fast && n_other < SET) {
			other[n_other++] = lines[i];
		}
	}
	if (n_same < 2 * SET || n_other < SET)
		return none("too few lines of one bank were found");
	for (int round = 0; round < ROUNDS; round++)
		for (int k = 0; k < CONDITIONS; k++) {
			/* In another order each time, so that drift hits all alike. */
			int c = (k + round) % CONDITIONS;

			took[c][round] = round_time(victim, c == ALONE ? NULL : c == SAME ? same : other, cpu);
		}
	p = chance(took[SAME], took[OTHER]);
	percent = 100 * (median(took[SAME], ROUNDS) / median(took[OTHER], ROUNDS) - 1);
	if (json)
		printf("{\"shown\": %s, \"alone_cycles\": %.1f, \"same_bank_cycles\": %.1f, \"other_banks_cycles\": %.1f, \"percent\": %.2f, \"chance\": %.5f}\n",
		       p < 0.01 && percent > 0 ? "true" : "false", median(took[ALONE], ROUNDS),
		       median(took[SAME], ROUNDS), median(took[OTHER], ROUNDS), percent, p);
	else
		printf("a read of the victim, cycles (medians of %d rounds): alone %.1f, neighbour in the same bank %.1f, in other banks %.1f\n"
		       "same bank against other banks: %+.2f %%, chance that this is luck %.5f\n%s\n",
		       ROUNDS, median(took[ALONE], ROUNDS), median(took[SAME], ROUNDS),
		       median(took[OTHER], ROUNDS), percent, p,
		       p < 0.01 && percent > 0 ?
			       "Shown: a neighbour in the same bank hurts more." :
			       "Nothing is shown: the difference may be luck, or none.");
	return p < 0.01 && percent > 0 ? 0 : 3;
}
