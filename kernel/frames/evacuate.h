/* SPDX-License-Identifier: GPL-2.0 */
/* Evacuate: make frames of a colour free that others have. */
#ifndef SOLOIST_EVACUATE_H
#define SOLOIST_EVACUATE_H

#include <linux/types.h>

/**
 * sol_evacuate() - make frames of a cell free, and list them
 * @cell: whose frames; page cache is dropped or moves, uncoloured memory moves
 * @want: frames that are wanted; no more than SOL_REFILL_MAX are made free
 * @force: begin a round, though the last one found nothing a moment ago
 * @budget: frames that may be looked at; becomes what is left
 *
 * Each call goes on where the last one stopped. May sleep, and reclaims to find room
 * for what moves. Return: how many frames were listed.
 */
u32 sol_evacuate(u32 cell, u32 want, bool force, u32 *budget);

/* Free frames in the kernel's per-CPU lists go where a walk finds them. Sleeps. */
void sol_evacuate_drain(void);

/* The same for what this CPU has just freed. */
void sol_evacuate_drain_here(void);

/* Is node @nid's free memory below the low watermark, or the min one? */
bool sol_evacuate_memory_low(int nid);
bool sol_evacuate_memory_short(int nid);

/* Frames that evacuations made free since load. */
u64 sol_evacuated(void);

int sol_evacuate_init(void);	/* 0 or -ENOENT */

#endif /* SOLOIST_EVACUATE_H */
