// SPDX-License-Identifier: MIT OR Apache-2.0
/* Product of two square matrices of doubles, as written or in blocks; verified. */
#include "load.h"

#include <string.h>

#define BLOCK 32

static void multiply(double *c, const double *a, const double *b, uint64_t n,
		     uint64_t block)
{
	memset(c, 0, n * n * sizeof(*c));
	for (uint64_t ii = 0; ii < n; ii += block)
		for (uint64_t kk = 0; kk < n; kk += block)
			for (uint64_t i = ii; i < ii + block && i < n; i++)
				for (uint64_t j = 0; j < n; j++) {
					double sum = c[i * n + j];

					for (uint64_t k = kk; k < kk + block && k < n; k++)
						sum += a[i * n + k] * b[k * n + j];
					c[i * n + j] = sum;
				}
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "naive", "blocked", NULL };
	struct load load = {
		.name = "matmult", .bytes = 3 << 20, .stride = 8,
		.seconds = 5, .threads = 1,
	};
	struct result result = { 0 };
	uint64_t n = 1;
	double *a, *b, *c, want = 0;

	load_parse(&load, argc, argv, "multiply two matrices", kinds);
	while ((n + 1) * (n + 1) * 24 <= load.bytes)
		n++;
	a = load_memory(&load, n * n * 24);
	b = a + n * n;
	c = b + n * n;
	for (uint64_t i = 0; i < n * n; i++) {
		a[i] = (double)(i % 7);
		b[i] = (double)(i % 5);
	}
	while (load_again(&load, &result)) {
		multiply(c, a, b, n, strcmp(load.kind, "naive") ? BLOCK : n);
		result.accesses += 2 * n * n * n;
		result.bytes += 3 * n * n * 8;
	}
	/* One element, by hand: whole numbers, so exactly. */
	for (uint64_t k = 0; k < n; k++)
		want += a[(n / 2) * n + k] * b[k * n + n / 3];
	result.checksum = c[(n / 2) * n + n / 3];
	result.verified = result.checksum == want ? "yes" : "no";
	return load_print(&load, &result);
}
