/* SPDX-License-Identifier: GPL-2.0 */
/* Arrays that are indexed by frame number, array.c. */
#ifndef SOLOIST_ARRAY_H
#define SOLOIST_ARRAY_H

#include <linux/types.h>

#include "../../core/frames/frames.h"

/* Note which of the machine's @n frames exist; before all else. 0 or -ENOMEM. */
int sol_array_init(u64 n);
void sol_array_exit(void);

/* Is frame @pfn described by arrays? If not, no element of it may be written. */
bool sol_array_has(u64 pfn);

/**
 * sol_array_new() - a zeroed array by frame number, each part of it on the node
 * of the frames that it tells of, as far as there is room
 * @n: elements
 * @size: of one, in bytes: a power of two, at most PAGE_SIZE
 *
 * Holes of the machine's memory take 16 bytes for each page of the array. May sleep.
 *
 * Return: the array, for vfree(), or NULL: no memory.
 */
void *sol_array_new(u64 n, size_t size);

#endif /* SOLOIST_ARRAY_H */
