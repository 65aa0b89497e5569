/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Words and numbers out of text that is not NUL terminated. */
#ifndef SOLOIST_SCAN_H
#define SOLOIST_SCAN_H

#include "../types.h"

/**
 * struct sol_word - a piece of somebody's text
 * @text: its first byte; not NUL terminated
 * @len: its bytes
 */
struct sol_word {
	const char *text;
	size_t len;
};

/**
 * sol_word_is() - is a word this one?
 * @word: the word
 * @s: NUL terminated
 *
 * Return: it is, to the last byte.
 */
static inline bool sol_word_is(struct sol_word word, const char *s)
{
	size_t i;

	for (i = 0; i < word.len && s[i]; i++)
		if (word.text[i] != s[i])
			return false;
	return i == word.len && !s[i];
}

/**
 * sol_scan_u64() - read a number, decimal or 0x hexadecimal, that a text begins with
 * @text: the text
 * @len: its bytes
 * @value: takes the number
 *
 * Return: how many characters it takes; 0: there is none, or it is too large (2^60
 * before its last digit), and @value is untouched.
 */
static inline size_t sol_scan_u64(const char *text, size_t len, u64 *value)
{
	u32 base = 10;
	size_t i = 0, first;
	u64 v = 0;

	if (len > 2 && text[0] == '0' && (text[1] | 32) == 'x') {
		base = 16;
		i = 2;
	}
	for (first = i; i < len; i++) {
		char c = text[i];
		u32 digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (base == 16 && (c | 32) >= 'a' && (c | 32) <= 'f')
			digit = (c | 32) - 'a' + 10;
		else
			break;
		if (v >> 60)
			return 0;
		v = v * base + digit;
	}
	if (i == first)
		return 0;
	*value = v;
	return i;
}

#endif /* SOLOIST_SCAN_H */
