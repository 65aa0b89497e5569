/* SPDX-License-Identifier: GPL-2.0 */
/* Arrays that are indexed by frame number, array.c. */
#ifndef SOLOIST_ARRAY_H
#define SOLOIST_ARRAY_H

#include <linux/types.h>

/**
 * sol_array_new() - a zeroed array by frame number, each part of it on the node
 * of the frames that it tells of, as far as there is room
 * @n: elements
 * @size: of one, in bytes: a power of two, at most PAGE_SIZE
 *
 * May sleep. Return: the array, for vfree(), or NULL: no memory.
 */
void *sol_array_new(u64 n, size_t size);

#endif /* SOLOIST_ARRAY_H */
