/* SPDX-License-Identifier: GPL-2.0 */
/* Search: a look at the free lists, for frames of any of several cells. */
#ifndef SOLOIST_SEARCH_H
#define SOLOIST_SEARCH_H

#include <linux/types.h>

/*
 * List up to @want frames of the @n @cell, ascending, all of @node, that lie in
 * the free blocks that come first. A bounded look, with the zone's lock held for
 * a bounded number of blocks. How many were listed. Preemption may be off.
 */
u32 sol_search(const u32 *cell, u32 n, u32 node, u32 want);

#endif /* SOLOIST_SEARCH_H */
