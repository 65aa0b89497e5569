// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Follows shuffled lists, one element a line: every load waits for the one before
 * (IsolBench's and PALLOC's latency). With more than one chain, that many loads are
 * on their way at once (PALLOC's pll, but in whichever banks its pages are).
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#define MOST 16

/* Sattolo's shuffle: one cycle through all @n lines. */
static void **make_list(char *at, uint64_t n, uint64_t stride, uint64_t seed)
{
	uint64_t *order = malloc(n * sizeof(*order));

	if (!order)
		return NULL;
	for (uint64_t i = 0; i < n; i++)
		order[i] = i;
	for (uint64_t i = n - 1; i > 0; i--) {
		uint64_t j, keep = order[i];

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		j = (seed >> 33) % i;
		order[i] = order[j];
		order[j] = keep;
	}
	for (uint64_t i = 0; i < n; i++)
		*(void **)(at + order[i] * stride) = at + order[(i + 1) % n] * stride;
	free(order);
	return (void **)at;
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "1", "2", "4", "8", "16", NULL };
	struct load load = {
		.name = "latency", .bytes = 64 << 20, .stride = LINE,
		.seconds = 5, .threads = 1,
	};
	struct result result = { 0 };
	void **chain[MOST];
	int chains;
	uint64_t n;
	char *at;

	load_parse(&load, argc, argv,
		   "follow shuffled lists, so many at once", kinds);
	chains = atoi(load.kind);
	n = load.bytes / chains / load.stride;
	if (n < 2) {
		fprintf(stderr, "latency: --size is too small for %d lists\n", chains);
		return 2;
	}
	at = load_memory(&load, load.bytes);
	for (int c = 0; c < chains; c++) {
		chain[c] = make_list(at + c * (load.bytes / chains), n, load.stride, c + 1);
		if (!chain[c])
			return 1;
	}
	while (load_again(&load, &result)) {
		for (uint64_t i = 0; i < n; i++)
			for (int c = 0; c < chains; c++)
				chain[c] = *(void **volatile *)chain[c];
		result.accesses += n * chains;
		result.bytes += n * chains * LINE;
	}
	for (int c = 0; c < chains; c++)
		result.checksum += (char *)chain[c] - at;
	return load_print(&load, &result);
}
