// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Follows shuffled lists, one element a line: every load waits for the one before
 * (IsolBench's and PALLOC's latency). With more than one chain, that many loads are
 * on their way at once (PALLOC's pll); --lines keeps them in the banks of one's choice.
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#define MOST 16

/* Sattolo's shuffle: one cycle through all @n lines. */
static void **make_list(char **at, uint64_t n, uint64_t seed)
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
		*(void **)at[order[i]] = at[order[(i + 1) % n]];
	free(order);
	return (void **)at[0];
}

/* The lines of its memory that are followed; how many. */
static uint64_t find_lines(const struct load *load, char ***lines)
{
	uint64_t n = load->bytes / load->stride;
	char *at = load_memory(load, load->bytes);

	*lines = malloc(n * sizeof(**lines));
	if (!*lines) {
		fprintf(stderr, "latency: no memory for a list of %lu lines\n",
			(unsigned long)n);
		exit(1);
	}
	for (uint64_t i = 0; i < n; i++)
		(*lines)[i] = at + i * load->stride;
	return load_choose(load, *lines, n);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "1", "2", "4", "8", "16", NULL };
	struct load load = {
		.name = "latency", .bytes = 64 << 20, .stride = LINE,
		.seconds = 5, .threads = 1, .can_choose = true,
	};
	struct result result = { 0 };
	void **chain[MOST];
	char **lines;
	int chains;
	uint64_t n;

	load_parse(&load, argc, argv,
		   "follow shuffled lists, so many at once", kinds);
	chains = atoi(load.kind);
	n = find_lines(&load, &lines) / chains;
	if (n < 2) {
		fprintf(stderr, "latency: --size is too small for %d lists%s\n", chains,
			load.lines ? " of those lines" : "");
		return 2;
	}
	/* What is printed is what is walked through. */
	load.bytes = n * chains * load.stride;
	for (int c = 0; c < chains; c++) {
		chain[c] = make_list(lines + c * n, n, c + 1);
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
		result.checksum += (char *)chain[c] - lines[0];
	return load_print(&load, &result);
}
