// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Number lists as the kernel writes them, "0-3,8": colours, nodes, cores.
 * Reading checks the whole text before it changes a bit. Numbers are decimal: who
 * writes 0xf or 0000000f means a mask, as CAT, PALLOC and taskset take them.
 */
#include "numlist.h"
#include "scan.h"
#include "text.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

#define MASK_BITS	256	/* of a mask that is told as a list */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* How many hexadecimal digits @text begins with; *@mask: no decimal number has them. */
static size_t scan_hex(const char *text, size_t len, bool *mask)
{
	size_t n;

	for (n = 0; n < len && hex_digit(text[n]) >= 0; n++)
		*mask |= text[n] > '9';
	*mask |= n > 1 && text[0] == '0';
	return n;
}

/*
 * The characters of the mask that @text begins with: 0xf, ff, 0000000f, or words
 * of 32 bits as /proc has them, 00000001,00000000. 0: it begins with none.
 */
static size_t scan_mask(const char *text, size_t len)
{
	bool mask = len > 2 && text[0] == '0' && (text[1] | 32) == 'x';
	size_t at = mask ? 2 : 0, n;

	n = scan_hex(text + at, len - at, &mask);
	at += n;
	if (!n || !mask || (at < len && text[at] != ',' && text[at] != '-'))
		return 0;
	while (at < len && text[at] == ',' &&
	       scan_hex(text + at + 1, len - at - 1, &mask) == 8)
		at += 9;
	return at;
}

static int refuse_mask(const char *mask, size_t len, struct sol_err *err)
{
	unsigned long bits[SOL_LONGS(MASK_BITS)] = { 0 };
	char list[96];
	u32 bit = 0, i;
	size_t at, n;
	int digit;

	for (at = len; at-- && bit < MASK_BITS; ) {
		digit = hex_digit(mask[at]);
		for (i = 0; digit >= 0 && i < 4; i++, bit++)
			if (digit >> i & 1)
				sol_bit_set(bits, bit);
	}
	n = sol_list_print(bits, MASK_BITS, list, sizeof(list));
	return sol_refuse(err, 0, -EINVAL, "\"%q\": a mask; write %s", mask, len,
			  n && n < sizeof(list) ?
			  list : "a list of numbers such as 0-3,8");
}

/* One "a" or "a-b" at text[*at]; moves *at behind it. */
static int scan_interval(const char *text, size_t len, size_t *at, u32 n,
			 u64 *first, u64 *last, struct sol_err *err)
{
	size_t i = *at, used;

	used = scan_mask(text + i, len - i);
	if (used)
		return refuse_mask(text + i, used, err);
	used = sol_scan_u64(text + i, len - i, first);
	if (!used)
		return sol_refuse(err, 0, -EINVAL,
				  "\"%q\": expected a number; a list is written such as 0-3,8",
				  text + i, len - i);
	i += used;
	*last = *first;
	if (i < len && text[i] == '-') {
		i++;
		used = scan_mask(text + i, len - i);
		if (used)
			return refuse_mask(text + i, used, err);
		used = sol_scan_u64(text + i, len - i, last);
		if (!used)
			return sol_refuse(err, 0, -EINVAL,
					  "\"%q\": expected a number after the -",
					  text + *at, len - *at);
		i += used;
	}
	if (*first > *last)
		return sol_refuse(err, 0, -EINVAL,
				  "\"%q\": the first number is above the last",
				  text + *at, i - *at);
	if (*last >= n)
		return sol_refuse(err, 0, -ERANGE,
				  "\"%q\": numbers go from 0 to %u only",
				  text + *at, i - *at, n ? n - 1 : 0);
	*at = i;
	return 0;
}

static int scan_list(const char *text, size_t len, u32 n, unsigned long *bits,
		     struct sol_err *err)
{
	size_t at = 0;
	u64 first = 0, last = 0;
	int rc;

	while (at < len) {
		rc = scan_interval(text, len, &at, n, &first, &last, err);
		if (rc)
			return rc;
		for (; bits && first <= last; first++)
			sol_bit_set(bits, first);
		if (at == len)
			break;
		if (text[at] != ',' || at + 1 == len)
			return sol_refuse(err, 0, -EINVAL,
					  "\"%q\": expected a comma and a number",
					  text + at, len - at);
		at++;
	}
	return 0;
}

int sol_list_parse(const char *text, size_t len, u32 n, unsigned long *bits,
		   struct sol_err *err)
{
	u32 i;
	int rc;

	while (len && is_blank(text[len - 1]))
		len--;
	while (len && is_blank(*text)) {
		text++;
		len--;
	}
	rc = scan_list(text, len, n, NULL, err);
	if (rc)
		return rc;
	for (i = 0; i < SOL_LONGS(n); i++)
		bits[i] = 0;
	return scan_list(text, len, n, bits, err);
}

size_t sol_list_print(const unsigned long *bits, u32 n, char *buf, size_t size)
{
	struct sol_text text = { .buf = buf, .size = size };
	const char *before = "";
	u32 i, last;

	if (size)
		buf[0] = '\0';
	for (i = 0; i < n; i = last + 1) {
		last = i;
		if (!sol_bit(bits, i))
			continue;
		while (last + 1 < n && sol_bit(bits, last + 1))
			last++;
		sol_text_put(&text, "%s%u", before, i);
		if (last > i)
			sol_text_put(&text, "-%u", last);
		before = ",";
	}
	return text.len;
}
