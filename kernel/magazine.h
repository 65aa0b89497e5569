/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Magazines: a few frames at hand on each CPU, for the faults of the task that
 * runs there, so that most faults take no lock.
 *
 * A magazine has some clips, each with frames of one cell; a filling takes
 * cells of the group in turn, on the CPU's own node, and pages are handed out
 * from the clips in turn, so that neighbours lie in different banks. A frame in
 * a magazine has left its list and belongs to nobody yet (owner 0). Before one
 * is handed out, its cell is looked up where the group had it when the
 * magazine was filled: the cell of another group, or one that a new colour set
 * dropped, is not there.
 *
 * Locking: a magazine belongs to its CPU, interrupts off; others flush it by
 * an interrupt to that CPU.
 */
#ifndef SOLOIST_MAGAZINE_H
#define SOLOIST_MAGAZINE_H

#include <linux/percpu.h>
#include <linux/sched.h>

#include "group.h"
#include "store.h"

#define SOL_CLIPS	4
#define SOL_ROUNDS	16

struct sol_clip {
	u32 n;
	u32 cell;
	u32 index;	/* of the cell among the group's cells */
	bool zero;	/* known to be */
	u32 pfn[SOL_ROUNDS];
};

struct sol_magazine {
	u32 next;	/* clip whose turn it is */
	struct sol_clip clip[SOL_CLIPS];
};

DECLARE_PER_CPU(struct sol_magazine, sol_magazines);

/*
 * A clip with a frame of @cells, when the next one has none: another one, or
 * after filling from the lists. Interrupts off. NULL: these are empty.
 */
struct sol_clip *sol_magazine_fill(struct sol_magazine *m, struct sol_group *g,
				   const struct sol_cells *cells, bool zero);

/* All magazines are empty for a moment, their frames in the lists. */
void sol_magazines_flush(void);

/*
 * The same, but at most ten times a second: it interrupts every CPU, and one
 * who would take a page out of colour instead has no right to that.
 */
void sol_magazines_flush_seldom(void);

/* Frames in all magazines, about. */
u64 sol_magazines_count(void);

/* The clip has a frame, of this colour set. */
static __always_inline bool sol_clip_fits(const struct sol_clip *clip,
					  const struct sol_cells *cells)
{
	return clip->n && clip->index < cells->n &&
	       cells->cell[clip->index] == clip->cell;
}

/*
 * A page of group @id's colours on this CPU's node, or NULL: fill lists.
 * Interrupts are on.
 */
static __always_inline struct page *sol_magazine_get(u16 id, gfp_t gfp)
{
	const struct sol_cells *cells;
	struct sol_magazine *m;
	struct sol_clip *clip;
	struct sol_group *g;
	bool zero;
	u32 pfn;

	local_irq_disable();
	g = group_get_fast(id);
	cells = g ? rcu_dereference_sched(g->cells) : NULL;
	if (unlikely(!cells))
		goto none;
	m = this_cpu_ptr(&sol_magazines);
	clip = &m->clip[m->next++ % SOL_CLIPS];
	if (unlikely(!sol_clip_fits(clip, cells))) {
		clip = sol_magazine_fill(m, g, cells, gfp & __GFP_ZERO);
		if (!clip)
			goto none;
	}
	pfn = clip->pfn[--clip->n];
	zero = clip->zero;
	WRITE_ONCE(sol_store.frame[pfn].link, id);
	__this_cpu_inc(g->stats->hits);
	if (zero && gfp & __GFP_ZERO)
		__this_cpu_inc(g->stats->zeroed);
	atomic_long_inc(&g->used);
	local_irq_enable();
	return sol_page_out(pfn, gfp, zero);
none:
	local_irq_enable();
	return NULL;
}

#endif /* SOLOIST_MAGAZINE_H */
