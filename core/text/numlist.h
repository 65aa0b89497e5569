/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Bitmaps, and their text form: lists of numbers, as the kernel writes them. */
#ifndef SOLOIST_NUMLIST_H
#define SOLOIST_NUMLIST_H

#include "../types.h"

#define SOL_LONG_BITS	(8 * sizeof(unsigned long))
#define SOL_LONGS(n)	(((n) + SOL_LONG_BITS - 1) / SOL_LONG_BITS)

static inline bool sol_bit(const unsigned long *bits, u32 i)
{
	return bits[i / SOL_LONG_BITS] >> (i % SOL_LONG_BITS) & 1;
}

static inline void sol_bit_set(unsigned long *bits, u32 i)
{
	bits[i / SOL_LONG_BITS] |= 1ul << (i % SOL_LONG_BITS);
}

static inline void sol_bit_clear(unsigned long *bits, u32 i)
{
	bits[i / SOL_LONG_BITS] &= ~(1ul << (i % SOL_LONG_BITS));
}

/*
 * Number lists as the kernel writes them: "0-3,8", blanks around them. Makes
 * @bits[SOL_LONGS(@n)] this list and nothing else; an empty text is the empty
 * list. 0, or -EINVAL / -ERANGE with words; @bits untouched then.
 */
int sol_list_parse(const char *text, size_t len, u32 n, unsigned long *bits,
		   struct sol_err *err);
size_t sol_list_print(const unsigned long *bits, u32 n, char *buf, size_t size);

#endif /* SOLOIST_NUMLIST_H */
