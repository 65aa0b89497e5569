/* SPDX-License-Identifier: GPL-2.0 */
/* Search: frames of several cells are looked for in the zones' free lists. */
#ifndef SOLOIST_SEARCH_H
#define SOLOIST_SEARCH_H

#include <linux/types.h>

/**
 * sol_search() - list frames of any of several cells, from the free lists
 * @cell: cells, ascending, all of @node
 * @n: how many
 * @node: node
 * @want: frames that are wanted
 *
 * Looks at a limited number of free blocks and holds the zone's lock for these.
 * Preemption may be off. Return: how many frames were listed.
 */
u32 sol_search(const u32 *cell, u32 n, u32 node, u32 want);

#endif /* SOLOIST_SEARCH_H */
