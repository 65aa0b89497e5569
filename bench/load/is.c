// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * NAS IS, integer sort, after its published definition (NPB, Bailey et al., 1991,
 * 2.3.6): keys are means of four numbers of the NAS generator, ranked by bucket
 * counting in ten iterations. Classes S, W, A, B have 2^16, 2^20, 2^23, 2^25 keys
 * below 2^11, 2^16, 2^19, 2^21. Threads share the counting. Verified as NAS demands: after each iteration five
 * ranks against the published ones, at the end the order of all keys.
 */
#include "load.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/*
 * Counts into @count how often each of @n keys below @most occurs; each thread counts
 * its part by itself, behind that, and all are added up.
 */
static void count_keys(const uint32_t *keys, uint64_t n, uint32_t *count, uint64_t most,
		       int threads)
{
#pragma omp parallel num_threads(threads)
	{
		uint32_t *mine = count + omp_get_thread_num() * most;

		memset(mine, 0, most * 4);
#pragma omp for schedule(static)
		for (uint64_t i = 0; i < n; i++)
			mine[keys[i]]++;
#pragma omp for schedule(static)
		for (uint64_t key = 0; key < most; key++)
			for (int t = 1; t < threads; t++)
				count[key] += count[t * most + key];
	}
}

/* x = 5^13 x mod 2^46, as a number in [0, 1). */
static double next(uint64_t *x)
{
	*x = (*x * 1220703125u) & ((1ull << 46) - 1);
	return *x * 0x1p-46;
}

/* Of each class: five places, and the ranks that their keys begin with. */
static const uint32_t place[4][5] = {
	{ 48427, 17148, 23627, 62548, 4431 },
	{ 357773, 934767, 875723, 898999, 404505 },
	{ 2112377, 662041, 5336171, 3642833, 4250760 },
	{ 41869, 812306, 5102857, 18232239, 26860214 },
};
static const int64_t rank[4][5] = {
	{ 0, 18, 346, 64917, 65463 },
	{ 1249, 11698, 1039987, 1043896, 1048018 },
	{ 104, 17523, 123928, 8288932, 8388264 },
	{ 33422937, 10244, 59149, 33135281, 99 },
};

/* What place @i's rank is after @iteration: the keys set each time move it. */
static int64_t rank_after(int class, int i, int64_t iteration)
{
	switch (class) {
	case 0:
		return rank[0][i] + (i <= 2 ? iteration : -iteration);
	case 1:
		return rank[1][i] + (i < 2 ? iteration - 2 : -iteration);
	case 2:
		return rank[2][i] + (i <= 2 ? iteration - 1 : 1 - iteration);
	default:
		return rank[3][i] + (i == 1 || i == 2 || i == 4 ? iteration : -iteration);
	}
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "S", "W", "A", "B", NULL };
	static const int keys_of[] = { 16, 20, 23, 25 };
	static const int most_of[] = { 11, 16, 19, 21 };
	struct load load = {
		.name = "is", .bytes = 1 << 20, .stride = 4, .passes = 10,
		.threads = 1, .can_thread = true,
	};
	struct result result = { 0 };
	uint32_t *keys, *count, *sorted;
	uint64_t n, most, x = 314159265;
	bool good = true;
	int class = 0;

	load_parse(&load, argc, argv, "NAS integer sort, class S, W, A or B", kinds);
	while (strcmp(kinds[class], load.kind))
		class++;
	if (load.passes < 1 || load.passes > 10) {
		fprintf(stderr, "is: --passes 1 to 10; NAS has 10\n");
		return 2;
	}
	n = 1ull << keys_of[class];
	most = 1ull << most_of[class];
	omp_set_dynamic(0);
	load.bytes = (2 * n + load.threads * most) * 4;
	keys = load_memory(&load, load.bytes);
	sorted = keys + n;
	count = sorted + n;
	for (uint64_t i = 0; i < n; i++) {
		double sum = next(&x);

		sum += next(&x);
		sum += next(&x);
		sum += next(&x);
		keys[i] = sum * (most / 4);
	}
	while (load_again(&load, &result)) {
		uint64_t iteration = result.passes + 1;

		uint32_t picked[5];

		keys[iteration] = iteration;
		keys[iteration + 10] = most - iteration;
		for (int i = 0; i < 5; i++)
			picked[i] = keys[place[class][i]];
		count_keys(keys, n, count, most, load.threads);
		for (uint64_t i = 1; i < most; i++)
			count[i] += count[i - 1];
		for (int i = 0; i < 5; i++)
			good &= count[picked[i] - 1] == rank_after(class, i, iteration);
		result.accesses += 2 * n + (load.threads + 1) * most;
		result.bytes += 4 * (n + (load.threads + 1) * most);
	}
	for (uint64_t i = n; i-- > 0;)
		sorted[--count[keys[i]]] = keys[i];
	for (uint64_t i = 1; i < n; i++)
		good &= sorted[i - 1] <= sorted[i];
	result.checksum = sorted[n / 2];
	result.verified = good ? "yes" : "no";
	return load_print(&load, &result);
}
