// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Text out of freestanding code; see text.h. */
#include "text.h"

#ifdef __KERNEL__
#include <linux/stdarg.h>
#else
#include <stdarg.h>
#endif

#define QUOTE_MAX	24	/* longest foreign word in a message */

static void put_char(struct sol_text *text, char c)
{
	if (text->len + 1 < text->size) {
		text->buf[text->len] = c;
		text->buf[text->len + 1] = '\0';
	}
	text->len++;
}

static void put_string(struct sol_text *text, const char *s)
{
	while (*s)
		put_char(text, *s++);
}

static void put_decimal(struct sol_text *text, u32 value)
{
	char digit[10];
	u32 n = 0;

	do {
		digit[n++] = '0' + value % 10;
		value /= 10;
	} while (value);
	while (n)
		put_char(text, digit[--n]);
}

static void put_hex(struct sol_text *text, u64 value)
{
	int shift = 60;

	put_string(text, "0x");
	while (shift && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put_char(text, "0123456789abcdef"[value >> shift & 15]);
}

static void put_quote(struct sol_text *text, const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < len && i < QUOTE_MAX; i++)
		put_char(text, word[i] >= ' ' && word[i] <= '~' ? word[i] : '?');
	if (i < len)
		put_string(text, "...");
}

static void put_format(struct sol_text *text, const char *format, va_list args)
{
	const char *word;

	for (; *format; format++) {
		if (*format != '%') {
			put_char(text, *format);
			continue;
		}
		switch (*++format) {
		case 's':
			put_string(text, va_arg(args, const char *));
			break;
		case 'u':
			put_decimal(text, va_arg(args, u32));
			break;
		case 'x':
			put_hex(text, va_arg(args, u64));
			break;
		case 'q':
			word = va_arg(args, const char *);
			put_quote(text, word, va_arg(args, size_t));
			break;
		default:
			return;
		}
	}
}

void sol_text_put(struct sol_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_format(text, format, args);
	va_end(args);
}

int sol_refuse(struct sol_err *err, u32 line, int code, const char *format, ...)
{
	struct sol_text text = { 0 };
	va_list args;

	if (!err)
		return code;
	text.buf = err->text;
	text.size = sizeof(err->text);
	err->line = line;
	err->text[0] = '\0';
	va_start(args, format);
	put_format(&text, format, args);
	va_end(args);
	return code;
}
