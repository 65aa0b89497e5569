// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Number lists. */
#include "check.h"
#include "colors/palette.h"

#define N	70

static unsigned long bits[SOL_LONGS(N)];

static int parse(const char *text, struct sol_err *err)
{
	return sol_list_parse(text, strlen(text), N, bits, err);
}

static void check_prints(const char *text, const char *as)
{
	struct sol_err err;
	char out[200];

	CHECK_EQ(parse(text, &err), 0);
	CHECK_EQ(sol_list_print(bits, N, out, sizeof(out)), strlen(as));
	if (strcmp(out, as))
		test_fail(__FILE__, __LINE__, "\"%s\" prints as \"%s\"", text,
			  out);
}

TEST(lists_that_are_right)
{
	check_prints("", "");
	check_prints("\n", "");
	check_prints("0", "0");
	check_prints("0-3,8\n", "0-3,8");
	check_prints(" 8,0-3 ", "0-3,8");
	check_prints("1,2,3,2-5", "1-5");
	check_prints("69", "69");
	check_prints("0-69", "0-69");
	check_prints("63,64", "63-64");
}

TEST(lists_that_are_wrong)
{
	static const struct {
		const char *text;
		int code;
		const char *words;
	} wrong[] = {
		{ ",", -EINVAL, "expected a number" },
		{ "1,", -EINVAL, "comma and a number" },
		{ "1,,2", -EINVAL, "expected a number" },
		{ "1 2", -EINVAL, "comma" },
		{ "1-", -EINVAL, "after the -" },
		{ "-1", -EINVAL, "expected a number" },
		{ "3-1", -EINVAL, "above the last" },
		{ "x", -EINVAL, "\"x\"" },
		{ "70", -ERANGE, "0 to 69" },
		{ "5,60-70", -ERANGE, "\"60-70\"" },
		{ "18446744073709551616", -EINVAL, "expected a number" },
		{ "99999999999", -ERANGE, "0 to 69" },
		/* Masks, and the lists that they mean. */
		{ "0xf", -EINVAL, "\"0xf\": a mask; write 0-3" },
		{ "0x3\n", -EINVAL, "write 0-1" },
		{ "0XF0", -EINVAL, "write 4-7" },
		{ "0x10", -EINVAL, "write 4" },
		{ "0xffc0", -EINVAL, "write 6-15" },
		{ "ff", -EINVAL, "write 0-7" },
		{ "1f", -EINVAL, "write 0-4" },
		{ "0000000f", -EINVAL, "write 0-3" },
		{ "03", -EINVAL, "write 0-1" },
		{ "00000001,00000002", -EINVAL, "write 1,32" },
		{ "0,0x3", -EINVAL, "write 0-1" },
		{ "0-0x3", -EINVAL, "write 0-1" },
		{ "0x3-5", -EINVAL, "write 0-1" },
		{ "0x0", -EINVAL, "a mask; write a list of numbers" },
		{ "0x5555555555555555555555555555555555555555", -EINVAL,
		  "a mask; write a list of numbers" },
		{ "0x", -EINVAL, "comma and a number" },
	};
	struct sol_err err;
	u32 i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK_EQ(parse("7", &err), 0);
		CHECK_EQ(parse(wrong[i].text, &err), wrong[i].code);
		if (!strstr(err.text, wrong[i].words))
			test_fail(__FILE__, __LINE__, "\"%s\": \"%s\"",
				  wrong[i].text, err.text);
		/* Untouched. */
		CHECK_EQ(bits[0], 1 << 7);
		CHECK_EQ(bits[1], 0);
	}
}

TEST(random_lists_round_trip)
{
	unsigned long want[SOL_LONGS(N)];
	struct sol_err err;
	char text[400];
	u32 n, i;

	for (n = 0; n < 2000; n++) {
		memset(want, 0, sizeof(want));
		for (i = below(N); i; i--)
			sol_bit_set(want, below(N));
		sol_list_print(want, N, text, sizeof(text));
		CHECK_EQ(parse(text, &err), 0);
		CHECK(!memcmp(want, bits, sizeof(bits)));
	}
}
