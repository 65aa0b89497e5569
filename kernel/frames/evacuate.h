/* SPDX-License-Identifier: GPL-2.0 */
/* Evacuate: make frames of a colour free that others have. */
#ifndef SOLOIST_EVACUATE_H
#define SOLOIST_EVACUATE_H

#include <linux/gfp_types.h>
#include <linux/types.h>

/**
 * sol_evacuate() - move pages out of frames of a cell, and list these frames
 * @cell: whose frames; page cache and memory of uncoloured tasks moves
 * @gfp: whether finding room may reclaim
 * @budget: frames that may be looked at; becomes what is left
 *
 * May sleep. Return: how many frames were listed.
 */
u32 sol_evacuate(u32 cell, gfp_t gfp, u32 *budget);

/* Free frames in the kernel's per-CPU lists go where a refill finds them. */
void sol_evacuate_drain(u32 node);

/* Pages that evacuations moved since load. */
u64 sol_evacuated(void);

int sol_evacuate_init(void);	/* 0 or -ENOENT */

#endif /* SOLOIST_EVACUATE_H */
