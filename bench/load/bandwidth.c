// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One access a stride, front to back, again and again (IsolBench's bandwidth),
 * and STREAM's four kernels.
 */
#include "load.h"

#ifdef __x86_64__
#include <emmintrin.h>
#endif
#include <omp.h>
#include <string.h>

static double pass_read(volatile uint64_t *at, uint64_t n, uint64_t step)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i += step)
		sum += at[i];
	return sum;
}

static double pass_write(volatile uint64_t *at, uint64_t n, uint64_t step)
{
	for (uint64_t i = 0; i < n; i += step)
		at[i] = i;
	return 0;
}

/* Two words past the caches. */
static void store_past(volatile uint64_t *at, uint64_t value)
{
#ifdef __x86_64__
	_mm_stream_si128((__m128i *)at, _mm_set1_epi64x(value));
#else
	__asm__ volatile("stnp %1, %1, [%0]" : : "r"(at), "r"(value) : "memory");
#endif
}

/* Past the caches: whole lines, as hardware wants them. */
static double pass_nontemporal(volatile uint64_t *at, uint64_t n, uint64_t step)
{
	for (uint64_t i = 0; i + 8 <= n; i += step)
		for (int j = 0; j < 8; j += 2)
			store_past(at + i + j, n);
	__sync_synchronize();
	return 0;
}

/* Three arrays in the memory: copy, scale, add, triad. */
static double pass_stream(const char *kind, double *at, uint64_t n)
{
	double *a = at, *b = at + n, *c = at + 2 * n;

	if (!strcmp(kind, "copy"))
		for (uint64_t i = 0; i < n; i++)
			c[i] = a[i];
	else if (!strcmp(kind, "scale"))
		for (uint64_t i = 0; i < n; i++)
			b[i] = 3 * c[i];
	else if (!strcmp(kind, "add"))
		for (uint64_t i = 0; i < n; i++)
			c[i] = a[i] + b[i];
	else
		for (uint64_t i = 0; i < n; i++)
			a[i] = b[i] + 3 * c[i];
	return a[n / 2];
}

static double pass(const struct load *load, void *at)
{
	uint64_t words = load->bytes / 8, step = load->stride / 8 ? load->stride / 8 : 1;

	if (!strcmp(load->kind, "read"))
		return pass_read(at, words, step);
	if (!strcmp(load->kind, "write"))
		return pass_write(at, words, step);
	if (!strcmp(load->kind, "nontemporal"))
		return pass_nontemporal(at, words, step);
	return pass_stream(load->kind, at, words / 3);
}

/* What each thread does in a pass: accesses, and bytes moved. */
static void count(const struct load *load, uint64_t *accesses, uint64_t *moved)
{
	uint64_t words = load->bytes / 8, step = load->stride / 8 ? load->stride / 8 : 1;
	bool stream = strlen(load->kind) < 6 && strcmp(load->kind, "read") &&
		      strcmp(load->kind, "write");

	if (stream) {
		uint64_t arrays =
			!strcmp(load->kind, "add") || !strcmp(load->kind, "triad") ? 3 : 2;

		*accesses = words / 3;
		*moved = words / 3 * arrays * 8;
	} else {
		*accesses = (words + step - 1) / step;
		*moved = *accesses * LINE;
	}
}

/* Each thread has memory of its own; they meet at a barrier once a pass. */
int main(int argc, char **argv)
{
	static const char *const kinds[] = { "read", "write", "nontemporal",
					     "copy", "scale", "add", "triad", NULL };
	struct load load = {
		.name = "bandwidth", .bytes = 64 << 20, .stride = LINE,
		.seconds = 5, .threads = 1, .can_thread = true,
	};
	struct result result = { 0 };
	uint64_t accesses, moved;
	double checksum = 0;
	bool again = true;

	load_parse(&load, argc, argv, "walk through memory, read or write", kinds);
	count(&load, &accesses, &moved);
	omp_set_dynamic(0);
#pragma omp parallel num_threads(load.threads) reduction(+ : checksum)
	{
		void *at = load_memory(&load, load.bytes);

#pragma omp barrier
#pragma omp single
		again = load_again(&load, &result);
		while (again) {
			checksum += pass(&load, at);
#pragma omp barrier
#pragma omp single
			{
				result.accesses += load.threads * accesses;
				result.bytes += load.threads * moved;
				again = load_again(&load, &result);
			}
		}
	}
	result.checksum = checksum;
	return load_print(&load, &result);
}
