/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Bitmaps, and their text form: lists of numbers, as the kernel writes them. */
#ifndef SOLOIST_NUMLIST_H
#define SOLOIST_NUMLIST_H

#include "../types.h"

#define SOL_LONG_BITS	(8 * sizeof(unsigned long))
#define SOL_LONGS(n)	(((n) + SOL_LONG_BITS - 1) / SOL_LONG_BITS)

/**
 * sol_bit() - is a bit set?
 * @bits: a bitmap
 * @i: below its size in bits
 *
 * Return: it is.
 */
static inline bool sol_bit(const unsigned long *bits, u32 i)
{
	return bits[i / SOL_LONG_BITS] >> (i % SOL_LONG_BITS) & 1;
}

/**
 * sol_bit_set() - set a bit; not atomic
 * @bits: a bitmap
 * @i: below its size in bits
 */
static inline void sol_bit_set(unsigned long *bits, u32 i)
{
	bits[i / SOL_LONG_BITS] |= 1ul << (i % SOL_LONG_BITS);
}

/**
 * sol_bit_clear() - clear a bit; not atomic
 * @bits: a bitmap
 * @i: below its size in bits
 */
static inline void sol_bit_clear(unsigned long *bits, u32 i)
{
	bits[i / SOL_LONG_BITS] &= ~(1ul << (i % SOL_LONG_BITS));
}

/**
 * sol_list_parse() - read a list of numbers as the kernel writes it: "0-3,8"
 * @text: with blanks around it or not; an empty one is the empty list
 * @len: its bytes
 * @n: numbers are below it
 * @bits: SOL_LONGS(@n) words, which become this list and nothing else
 * @err: takes the words of a refusal; may be NULL
 *
 * Return: 0; -EINVAL: no such list; -ERANGE: a number is too large. @bits is untouched
 * then.
 */
int sol_list_parse(const char *text, size_t len, u32 n, unsigned long *bits,
		   struct sol_err *err);

/**
 * sol_list_print() - write a list as the kernel does: "0-3,8"
 * @bits: SOL_LONGS(@n) words
 * @n: numbers below it are looked at
 * @buf: takes the text and a NUL
 * @size: its bytes; what does not fit is left out
 *
 * Return: the bytes of the whole text without its NUL, as snprintf().
 */
size_t sol_list_print(const unsigned long *bits, u32 n, char *buf, size_t size);

#endif /* SOLOIST_NUMLIST_H */
