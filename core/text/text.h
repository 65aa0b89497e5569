/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Text out of freestanding code: a bounded buffer and a tiny format, since
 * core/ has no libc. Text that does not fit is counted, as snprintf does.
 */
#ifndef SOLOIST_TEXT_H
#define SOLOIST_TEXT_H

#include "../types.h"

/**
 * struct sol_text - a text that is written
 * @buf: takes it, always with a NUL
 * @size: bytes of @buf
 * @len: bytes that were asked for, also beyond @size
 */
struct sol_text {
	char *buf;
	size_t size;
	size_t len;
};

/**
 * sol_text_put() - append to a text
 * @text: the text
 * @format: %s is a string, %u a u32 in decimal, %x a u64 as 0x..., %q a word of
 *	somebody's text (const char *, size_t), cut to 24 characters, unprintable ones
 *	shown as '?'
 */
void sol_text_put(struct sol_text *text, const char *format, ...);

/**
 * sol_refuse() - say why something is refused
 * @err: takes the words and @line; may be NULL
 * @line: of the text that is wrong, from 1; 0: none
 * @code: a negative errno
 * @format: as of sol_text_put()
 *
 * Return: @code.
 */
int sol_refuse(struct sol_err *err, u32 line, int code, const char *format,
	       ...);

#endif /* SOLOIST_TEXT_H */
