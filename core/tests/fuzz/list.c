// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Fuzz the number lists; what is taken must print and read back. */
#include <stdlib.h>

#include "colors/palette.h"

#define MUST(condition)	do { if (!(condition)) abort(); } while (0)
#define N		130

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	unsigned long bits[SOL_LONGS(N)] = { 1, 2, 3 }, again[SOL_LONGS(N)];
	struct sol_err err = { 0 };
	char text[1024];
	size_t len;

	if (sol_list_parse((const char *)data, size, N, bits, &err)) {
		MUST(err.text[0]);
		MUST(bits[0] == 1 && bits[1] == 2 && bits[2] == 3);
		return 0;
	}
	len = sol_list_print(bits, N, text, sizeof(text));
	MUST(len < sizeof(text));
	MUST(!sol_list_parse(text, len, N, again, &err));
	MUST(!memcmp(bits, again, sizeof(bits)));
	return 0;
}
