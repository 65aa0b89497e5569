// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Number lists as the kernel writes them, "0-3,8": colours, nodes, cores.
 * Reading checks the whole text before it changes a bit.
 */
#include "numlist.h"
#include "scan.h"
#include "text.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One "a" or "a-b" at text[*at]; moves *at behind it. */
static int scan_interval(const char *text, size_t len, size_t *at, u32 n,
			 u64 *first, u64 *last, struct sol_err *err)
{
	size_t i = *at, used;

	used = sol_scan_u64(text + i, len - i, first);
	if (!used)
		return sol_refuse(err, 0, -EINVAL,
				  "\"%q\": expected a number; a list is written such as 0-3,8",
				  text + i, len - i);
	i += used;
	*last = *first;
	if (i < len && text[i] == '-') {
		i++;
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
