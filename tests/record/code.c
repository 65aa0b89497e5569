// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs functions of the C library and says where their code lies, for tests/record/run:
 * `page VIRTUAL PHYSICAL`, page numbers in hexadecimal. With a word it runs them until it is
 * killed, and says nothing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int above(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void run_all(void)
{
	int numbers[4] = {3, 1, 4, 1};
	struct tm when = {.tm_mday = 1};
	char text[64];
	regex_t regex;

	qsort(numbers, 4, sizeof(*numbers), above);
	snprintf(text, sizeof(text), "%f", strtod("1.5", NULL));
	strftime(text, sizeof(text), "%c", &when);
	if (!regcomp(&regex, "a*b", 0))
		regfree(&regex);
	memfrob(text, 4);
	srandom(1);
}

int main(int argc, char **argv)
{
	void *functions[] = {qsort,   strtod,  strftime, regcomp,
			     regfree, memfrob, srandom};
	int pagemap = open("/proc/self/pagemap", O_RDONLY);

	(void)argv;
	do
		run_all();
	while (argc > 1);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		uintptr_t page = (uintptr_t)functions[i] / 4096;
		uint64_t entry;

		if (pread(pagemap, &entry, 8, page * 8) != 8 || !(entry >> 63))
			return 1;
		printf("page %#lx %#lx\n", page,
		       (unsigned long)(entry & ((1ull << 55) - 1)));
	}
	return 0;
}
