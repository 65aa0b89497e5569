// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * OpenMP loop: threads write their part of the memory and meet at a barrier, once a
 * pass. How long each waited there is printed: one slow thread holds up all
 * (TintMalloc, figures 12 and 13).
 */
#include "load.h"

#include <omp.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static const char *const kinds[] = { NULL };
	struct load load = {
		.name = "barrier", .bytes = 16 << 20, .stride = LINE,
		.seconds = 5, .threads = 4, .can_thread = true,
	};
	struct result result = { 0 };
	char **memory;
	double *idle;
	bool again = true;
	int status;

	load_parse(&load, argc, argv, "threads that meet at a barrier", kinds);
	omp_set_num_threads(load.threads);
	omp_set_dynamic(0);
	memory = calloc(load.threads, sizeof(*memory));
	idle = calloc(load.threads * 8, sizeof(*idle));
	if (!memory || !idle)
		return 1;
#pragma omp parallel
	{
		int me = omp_get_thread_num();
		double from;

		memory[me] = load_memory(&load, load.bytes);
#pragma omp barrier
#pragma omp single
		load_again(&load, &result);
		while (again) {
			volatile char *at = memory[me];

			for (uint64_t i = 0; i < load.bytes; i += load.stride)
				at[i]++;
			from = load_now();
#pragma omp barrier
			idle[me * 8] += load_now() - from;
#pragma omp single
			{
				result.accesses += load.threads * (load.bytes / load.stride);
				result.bytes += 2 * load.threads * (load.bytes / load.stride) * LINE;
				again = load_again(&load, &result);
			}
		}
	}
	status = load_print(&load, &result);
	for (int i = 0; i < load.threads; i++)
		fprintf(stderr, "barrier: thread %d idle %.3f s\n", i, idle[i * 8]);
	return status;
}
