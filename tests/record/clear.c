// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Stores to 8 MiB nine times by memset, for tests/record/run.
 */
#include <string.h>

static char memory[8 << 20] __attribute__((aligned(4096)));

int main(void)
{
	for (int pass = 0; pass < 9; pass++) {
		memset(memory, 0, sizeof(memory));
		/* Else it were one of them. */
		__asm__ volatile("" : : "r"(memory) : "memory");
	}
	return 0;
}
