// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One access a stride, front to back, again and again (IsolBench's bandwidth),
 * and STREAM's four kernels.
 */
#include "load.h"

#include <emmintrin.h>
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

/* Past the caches: whole lines, as hardware wants them. */
static double pass_nontemporal(volatile uint64_t *at, uint64_t n, uint64_t step)
{
	__m128i value = _mm_set1_epi64x(n);

	for (uint64_t i = 0; i + 8 <= n; i += step)
		for (int j = 0; j < 8; j += 2)
			_mm_stream_si128((__m128i *)(at + i + j), value);
	_mm_sfence();
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

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "read", "write", "nontemporal",
					     "copy", "scale", "add", "triad", NULL };
	struct load load = {
		.name = "bandwidth", .bytes = 64 << 20, .stride = LINE,
		.seconds = 5, .threads = 1,
	};
	struct result result = { 0 };
	uint64_t words, step, per_pass, moved;
	bool stream;
	void *at;

	load_parse(&load, argc, argv, "walk through memory, read or write", kinds);
	at = load_memory(&load, load.bytes);
	words = load.bytes / 8;
	step = load.stride / 8 ? load.stride / 8 : 1;
	stream = strlen(load.kind) < 6 && strcmp(load.kind, "read") &&
		 strcmp(load.kind, "write");
	if (stream) {
		uint64_t n = words / 3, arrays =
			!strcmp(load.kind, "add") || !strcmp(load.kind, "triad") ? 3 : 2;

		per_pass = n;
		moved = n * arrays * 8;
	} else {
		per_pass = (words + step - 1) / step;
		moved = per_pass * LINE;
	}
	while (load_again(&load, &result)) {
		if (stream)
			result.checksum += pass_stream(load.kind, at, words / 3);
		else if (!strcmp(load.kind, "read"))
			result.checksum += pass_read(at, words, step);
		else if (!strcmp(load.kind, "write"))
			result.checksum += pass_write(at, words, step);
		else
			result.checksum += pass_nontemporal(at, words, step);
		result.accesses += per_pass;
		result.bytes += moved;
	}
	return load_print(&load, &result);
}
