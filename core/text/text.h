/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Text out of freestanding code: a bounded buffer and a tiny format, since
 * core/ has no libc. Text that does not fit is counted, as snprintf does.
 */
#ifndef SOLOIST_TEXT_H
#define SOLOIST_TEXT_H

#include "../types.h"

/* A writer; `len` counts what was asked for, also beyond `size`. */
struct sol_text {
	char *buf;
	size_t size;
	size_t len;
};

/*
 * Append by @format: %s a string, %u a u32 in decimal, %x a u64 as 0x...,
 * %q a word of someone's text (const char *, size_t): cut to 24 characters,
 * unprintable ones shown as '?'. The buffer is always NUL terminated.
 */
void sol_text_put(struct sol_text *text, const char *format, ...);

/* Fill @err (may be NULL) and return @code. @format as above. */
int sol_refuse(struct sol_err *err, u32 line, int code, const char *format,
	       ...);

#endif /* SOLOIST_TEXT_H */
