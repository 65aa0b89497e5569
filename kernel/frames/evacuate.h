/* SPDX-License-Identifier: GPL-2.0 */
/* Evacuate: make frames of a colour free that others have. */
#ifndef SOLOIST_EVACUATE_H
#define SOLOIST_EVACUATE_H

#include <linux/list.h>
#include <linux/types.h>

#define SOL_EVACUATED_MAX	64u	/* pages that move together */

struct folio;

/**
 * struct sol_evacuated - a frame whose page goes
 * @pfn: the frame
 * @cell: its cell
 * @adopted: it comes to us when it is freed
 */
struct sol_evacuated {
	u32 pfn;
	u32 cell;
	bool adopted;
};

/**
 * struct sol_evacuation - pages that were gathered
 * @spare: an isolated CPU is there, and shall not be interrupted
 * @pages: isolated folios, to migrate
 * @isolated: there are some
 * @no_room: a page stayed since the node had no memory for it; the caller clears it
 * @dropped: folios that left the page cache; we have their last reference
 * @n_dropped: how many
 * @frame: frames that are wanted of all these
 * @n: how many
 */
struct sol_evacuation {
	bool spare;
	struct list_head pages;
	bool isolated;
	bool no_room;
	struct folio *dropped[SOL_EVACUATED_MAX];
	u32 n_dropped;
	struct sol_evacuated frame[SOL_EVACUATED_MAX];
	u32 n;
};

struct sol_evacuation *sol_evacuation_new(void);	/* NULL: no memory; kfree() it */

/**
 * sol_evacuate_gather() - gather pages in frames of a cell; list those that are free
 * @e: not full
 * @cell: whose frames; page cache is dropped or moves, uncoloured memory moves
 * @want: frames that are wanted
 * @force: even if the last round found nothing a moment ago
 * @budget: frames that may be looked at; becomes what is left
 *
 * Each call goes on where the last one stopped. May sleep. sol_evacuate_finish() must
 * follow in the same section of the lists. Return: how many frames were free, and are
 * listed.
 */
u32 sol_evacuate_gather(struct sol_evacuation *e, u32 cell, u32 want,
			bool force, u32 *budget);

/**
 * sol_evacuate_finish() - the pages go, and their frames are listed
 * @e: becomes empty
 * @reclaims: reclaim memory if there is no room for what moves; else kswapd is woken
 * @in_vain: becomes how many pages stayed; unchanged if there were none
 *
 * May sleep. Return: how many frames were listed.
 */
u32 sol_evacuate_finish(struct sol_evacuation *e, bool reclaims, u32 *in_vain);

/*
 * Both; it reclaims. A page that stays costs some of @budget. That all of a batch stay says
 * nothing of those behind them, if the round is not over.
 */
u32 sol_evacuate(struct sol_evacuation *e, u32 cell, u32 want, bool force,
		 u32 *budget);

/* The next gathering in @cell begins a round, rather than to end one. */
void sol_evacuate_anew(u32 cell);

/* Is a round over @cell's frames unfinished? */
bool sol_evacuate_in_round(u32 cell);

/* Free frames in the kernel's per-CPU lists go where a walk finds them. Sleeps. */
void sol_evacuate_drain(void);

/* The same for what this CPU has just freed. */
void sol_evacuate_drain_local(void);

/* Is node @nid's free memory below the low watermark, or the min one? */
bool sol_evacuate_memory_low(int nid);
bool sol_evacuate_memory_short(int nid);

/* Frames that evacuations made free since load. */
u64 sol_evacuated(void);

int sol_evacuate_init(void);	/* 0 or -ENOENT */

#endif /* SOLOIST_EVACUATE_H */
