// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loads 8 MiB nine times, a word of each line, for tests/record/run:
 *
 *   loads list     each line names the next: a load waits for the one before
 *   loads array    no load waits
 *   loads copy     none does: a string instruction copies them, where there is one
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LINES (1ul << 17)
#define WORDS 8
#define STEP 40503 /* odd, so that all lines come once */

static uintptr_t memory[LINES * WORDS] __attribute__((aligned(4096)));
static uintptr_t copy[LINES * WORDS] __attribute__((aligned(4096)));

static void copy_all(void)
{
#ifdef __x86_64__
	uintptr_t *from = memory, *to = copy;
	size_t words = LINES * WORDS;

	__asm__ volatile("rep movsq" : "+S"(from), "+D"(to), "+c"(words)::"memory");
#else
	memcpy(copy, memory, sizeof(copy));
#endif
}

int main(int argc, char **argv)
{
	uintptr_t at = (uintptr_t)memory, sum = 0;

	for (size_t i = 0; i < LINES; i++)
		memory[i * WORDS] = (uintptr_t)&memory[(i + STEP) % LINES * WORDS];
	if (argc != 2)
		return 2;
	for (int pass = 0; pass < 9; pass++) {
		if (!strcmp(argv[1], "copy")) {
			copy_all();
			continue;
		}
		for (size_t i = 0; i < LINES; i++) {
			if (!strcmp(argv[1], "list"))
				at = *(volatile uintptr_t *)at;
			else
				sum += *(volatile uintptr_t *)&memory[i * WORDS];
		}
	}
	return (at + sum) == 1;
}
