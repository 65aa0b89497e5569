/* SPDX-License-Identifier: GPL-2.0 */
/* Evacuate: make frames of a colour free that others have. */
#ifndef SOLOIST_EVACUATE_H
#define SOLOIST_EVACUATE_H

#include <linux/gfp_types.h>
#include <linux/types.h>

/*
 * Move pages that are not ours, of the page cache and of uncoloured tasks, out
 * of frames of @cell, and list these. Looks at no more than *@budget frames.
 * May sleep, and reclaim as @gfp says. How many were listed.
 */
u32 sol_evacuate(u32 cell, gfp_t gfp, u32 *budget);

/* Free frames that the CPUs keep at hand go where a refill finds them. */
void sol_evacuate_drain(u32 node);

/* Pages that were moved so, since load. */
u64 sol_evacuated(void);

int sol_evacuate_init(void);	/* 0 or -ENOENT */

#endif /* SOLOIST_EVACUATE_H */
