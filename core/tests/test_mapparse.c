// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What the map parser refuses, and in which words; printing. */
#include "check.h"

static struct sol_map map, again;

#define V	"soloist-map 1\n"
#define R	"range 0 0x1000000\n"

static const struct wrong {
	const char *text;
	u32 line;
	const char *words;	/* part of the message */
} wrong[] = {
	{ "", 1, "empty" },
	{ "# only a comment\n", 1, "empty" },
	{ "soloist-map 2\n", 1, "version 1" },
	{ "soloist-map\n", 1, "version 1" },
	{ "soloist-map 0\n", 1, "version 1" },
	{ "soloist-map 1 2\n", 1, "\"2\" is more than expected" },
	{ "layout\n", 1, "soloist-map 1" },
	{ V, 0, "layout" },
	{ V "layout\n", 0, "range" },
	{ V "colour 12\n", 2, "\"colour\"" },
	{ V "name\n", 2, "name: nothing given" },
	{ V "name a b\n", 2, "\"b\" is more" },
	{ V "name abcdefghijklmnopqrstuvwxyzabcdefgh\n", 2, "31 characters" },
	{ V "name a\nname b\n", 3, "given twice" },
	{ V "line 63\n", 2, "power of two" },
	{ V "line 8192\n", 2, "power of two" },
	{ V "llc 11\n", 2, "below 12" },
	{ V "llc 12 13 12^13\nlayout\nbank 13\n" R, 0, "llc function 2" },
	{ V "bank 13\n", 2, "`layout` before" },
	{ V "layout\nbank\n", 3, "bank: nothing given" },
	{ V "layout\nbank 13^\n", 3, "\"13^\"" },
	{ V "layout\nbank 13,14\n", 3, "joined by ^" },
	{ V "layout\nbank 52\n", 3, "0 to 51" },
	{ V "layout\nbank 13^14^13\n", 3, "bit 13 is named twice" },
	{ V "layout\nbank 13 13\n" R, 2, "bank function 1" },
	{ V "layout\nbank 13 14\nrank 13^14\n" R, 2, "rank function 0" },
	{ V "layout\nbank 30\n" R, 2, "always 0" },
	{ V "layout\nbank 13\nchannel 14 13^14\n" R, 2, "channel function 1" },
	{ V "layout\ncol 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26\n",
	  3, "more than 20" },
	{ V "layout\nbank 13\nbank 14\n", 4, "given twice" },
	{ V "layout\nbank 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", 3,
	  "more than 16" },
	{ V "layout\nbank 6 7 8 9 10 11 12 13 14 15\nrank 16 17 18 19\n"
	  "channel 20 21 22\n" R, 0, "65536" },
	{ V "layout\ninterleave 4 4096\n", 3, "channel functions" },
	{ V "layout\ninterleave 2 4096\n", 3, "3 to 63" },
	{ V "layout\ninterleave 0 4096 on\n", 3, "3 to 63" },
	{ V "layout\ninterleave 2 4096 at 1 2\n", 3, "`on` and the number" },
	{ V "layout\ninterleave 2 4096 on 1\n", 3, "on: nothing given" },
	{ V "layout\ninterleave 2 4096 on 1 1\n", 3, "given twice" },
	{ V "layout\ninterleave 2 4096 on 1 63\n", 3, "0 to 62" },
	{ V "layout\ninterleave 2 4096 on 1 2 3\n", 3, "more than" },
	{ V "layout\ninterleave 64 4096\n", 3, "3 to 63" },
	{ V "layout\ninterleave 3\n", 3, "granule: nothing given" },
	{ V "layout\ninterleave 3 3000\n", 3, "power of two" },
	{ V "layout\ninterleave 3 32\n", 3, "a line, 64 bytes" },
	{ V "layout\ninterleave 3 64\ninterleave 3 64\n", 4, "given twice" },
	{ V "layout\ninterleave 3 64\nline 128\n" R, 2, "less than a line" },
	{ V "llc 12\nlayout\nbank 13\ninterleave 3 4096\n" R, 3, "can't stand" },
	{ V "layout\nbank 23\ninterleave 3 4096\n" R, 2, "always 0" },
	{ V "layout\nrow @\n", 3, "@N:" },
	{ V "layout\nrow @3\n", 3, "@N:" },
	{ V "layout\nrow @3:\n", 3, "@N:" },
	{ V "layout\nrow @32:5\n", 3, "too high" },
	{ V "layout\nrow @31:5 6\n", 3, "too high" },
	{ V "layout\nrow 5 6 @1:7\n", 3, "given twice" },
	{ V "layout\nrow 12\ncol 13\n" R, 2, "offset bit 6" },
	{ V "layout\nrow 13 14 13^14\ncol 6\n" R, 2, "row function 2" },
	{ V "layout\nbank 13 14\nrow 15\ncol 6 13^15\n" R, 2, "col function 1" },
	{ V "layout\nbank 5\n" R, 2, "within a line of 64" },
	{ V "line 4096\nlayout\nbank 11\n" R, 3, "within a line of 4096" },
	{ V "layout\nrow 13^3\n" R, 2, "within a line of 64" },
	{ V "layout\nrow 13\ncol 6 3^7\n" R, 2, "col function 1 mixes" },
	{ V "layout\ncs 256\n", 3, "chip select" },
	{ V "layout\nbg 16\n", 3, "bit numbers" },
	{ V "layout\nbank 13\nbg 1\n" R, 2, "bank has only 1" },
	{ V "layout\nbank 13\nsub 0\n" R, 2, "channel has only 0" },
	{ V "layout\nlayout\nlayout\nlayout\nlayout\n", 6, "more than 4" },
	{ V "layout\nbank 13\nlayout\nbank 13\n" R, 4, "layout 1: no range" },
	{ V "range\n", 2, "range start: nothing" },
	{ V "range 0\n", 2, "range end: nothing" },
	{ V "range 0 0x1001\n", 2, "4096" },
	{ V "range 4096 4096\n", 2, "above the start" },
	{ V "range 0 99999999999999999999999\n", 2, "2^52" },
	{ V "range 0 0x10000000000001000\n", 2, "2^52" },
	{ V "range 0 -1\n", 2, "\"-1\"" },
	{ V "range 0 4096 node 64\n", 2, "0 to 63" },
	{ V "range 0 4096 node\n", 2, "node: nothing given" },
	{ V "range 0 4096 colour 1\n", 2, "node, base or layout" },
	{ V "range 0 8192 base 0xffffffffff000\n", 2, "pass 2^52" },
	{ V "layout\nbank 13\nrange 0 4096 layout 1\n", 4, "layout 1 is not" },
	{ V "range 0 8192\nrange 4096 12288\n", 3, "ascending" },
	{ V "layout\nbank 13\nrange 0 0x8000\nrange 0x8000 0x10000 base 0x7000\n",
	  5, "in line 4" },
	{ V "llc 12 30\nlayout\nbank 13\nrange 0 0x100000000 base 0x1000\n", 5,
	  "llc functions" },
	{ V "llc 12 13 14 15 16 17 18 19 20 21 22 23\nlayout\n"
	  "bank 12 13 14 15 16 17 18 19 20 21\nrange 0 0x1000000\n", 0,
	  "cells" },
};

TEST(wrong_maps_are_refused_in_words)
{
	static const struct sol_map zero;
	struct sol_err err;
	u32 i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct wrong *w = &wrong[i];

		memset(&map, 0xaa, sizeof(map));
		memset(&err, 0xaa, sizeof(err));
		if (sol_map_parse(&map, w->text, strlen(w->text), 12, &err) !=
		    -EINVAL)
			test_fail(__FILE__, __LINE__, "was taken:\n%s",
				  w->text);
		if (err.line != w->line || !strstr(err.text, w->words))
			test_fail(__FILE__, __LINE__,
				  "line %u \"%s\", expected line %u \"%s\" for:\n%s",
				  err.line, err.text, w->line, w->words,
				  w->text);
		CHECK(!memcmp(&map, &zero, sizeof(map)));
		/* Nobody need listen. */
		CHECK_EQ(sol_map_parse(&map, w->text, strlen(w->text), 12, NULL),
			 -EINVAL);
	}
}

/* A text that is right for small pages may not be for larger ones. */
TEST(frames_of_other_sizes)
{
	static const char text[] = V "layout\nbank 13\nrange 0x1000 0x9000\n";
	struct sol_err err;
	u32 shift;

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 12, &err), 0);
	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 14, &err), -EINVAL);
	CHECK_EQ(err.line, 4);
	CHECK(strstr(err.text, "multiples of the page size 16384"));
	for (shift = 0; shift < 20; shift++) {
		if (shift >= 12 && shift <= 16)
			continue;
		CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, shift, &err),
			 -EINVAL);
		CHECK(strstr(err.text, "expected 2^12 to 2^16"));
	}
}

TEST(too_many_ranges)
{
	char text[4096] = V "layout\nbank 13\n";
	struct sol_err err;
	u32 i;

	for (i = 0; i < 65; i++)
		sprintf(text + strlen(text), "range 0x%x 0x%x base 0x%x\n",
			i << 16, (i + 1) << 16, i << 16);
	CHECK_EQ(sol_map_parse(&map, text, strlen(text), 12, &err), -EINVAL);
	CHECK_EQ(err.line, 68);
	CHECK(strstr(err.text, "more than 64"));
}

TEST(blanks_comments_and_line_ends)
{
	static const char text[] =
		"\n  # a map\r\nsoloist-map\t1 # version\r\n\n layout# one\n"
		"bank 13 0xe^20 #\nrange 0 0X1000000 node 2";
	struct sol_err err;

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 12, &err), 0);
	CHECK_EQ(map.layout[0].bank.mask[1], 1 << 14 | 1 << 20);
	CHECK_EQ(map.n_nodes, 3);
	CHECK_EQ(map.line, 64);
}

TEST(offsets_may_go_down)
{
	static const char text[] =
		"soloist-map 1\nlayout\nbank 13\nrange 0 0x8000 base 0x8000\n"
		"range 0x8000 0x10000\n";
	struct sol_err err;

	CHECK_EQ(sol_map_parse(&map, text, sizeof(text) - 1, 12, &err), 0);
}

static void check_round_trip(void)
{
	char text[8192], small[40];
	struct sol_err err;
	size_t len = sol_map_print(&map, text, sizeof(text));

	CHECK(len < sizeof(text));
	CHECK_EQ(len, strlen(text));
	CHECK_EQ(sol_map_print(&map, NULL, 0), len);
	CHECK_EQ(sol_map_print(&map, small, sizeof(small)), len);
	CHECK_EQ(strlen(small), sizeof(small) - 1);
	CHECK_EQ(sol_map_parse(&again, text, len, map.frame_shift, &err), 0);
	CHECK(!memcmp(&map, &again, sizeof(map)));
}

TEST(print_and_parse_are_inverse)
{
	static const char *const name[] = {
		"opteron-6128", "opteron-6128-noninterleaved", "xeon-w3530",
		"ddr5", "asymmetric",
	};
	u32 i;

	for (i = 0; i < 5; i++) {
		load_map(&map, name[i]);
		check_round_trip();
	}
	for (i = 0; i < 200; i++) {
		random_map(&map);
		check_round_trip();
	}
}

/* Damaged maps: never more than refused (the sanitizers watch). */
TEST(damaged_maps)
{
	char text[8192];
	struct sol_err err;
	u32 n, i, taken = 0;

	for (n = 0; n < 3000; n++) {
		size_t len;

		if (n % 100 == 0)
			random_map(&map);
		else
			load_map(&map, n & 1 ? "asymmetric" : "opteron-6128");
		len = sol_map_print(&map, text, sizeof(text));
		for (i = 0; i <= below(3); i++)
			text[below(len)] = once_in(2) ? (char)rnd() :
					   "0123456789 ^@:#\n"[below(16)];
		if (once_in(4))
			len = below(len);
		if (!sol_map_parse(&map, text, len, 12 + 2 * below(3), &err)) {
			check_round_trip();
			taken++;
		}
	}
	CHECK(taken && taken < n);
}
