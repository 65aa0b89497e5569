/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Magazines: a few frames at hand on each CPU, for the faults of the tasks that
 * run there, so that most faults and frees take no lock that others take and
 * write no line that others write.
 *
 * A CPU has some magazines, and a group on a node always uses the same one, so
 * that groups that take turns on a CPU seldom empty each other's. A magazine has
 * some clips, each with frames of one cell; a filling takes cells of the group
 * in turn, on one node, as many frames of each, and pages are handed out from
 * the clips in turn, so that neighbours lie in different banks and all cells
 * give alike. A cell without a frame in its list is no reason to take from the
 * others: the ladder gets it some first, unless all of the cell was looked
 * through in vain lately. Where all is taken on the near node and the group rests
 * there, the next node's is asked first, for a tick.
 *
 * A frame in a magazine has left its list and belongs to nobody yet. Before one
 * is handed out, its cell is looked up where the group had it when the magazine
 * was filled: the cell of another group, or one that a new colour set dropped,
 * is not there.
 *
 * Freed frames are gathered and go to their lists together, cell by cell.
 *
 * Locking: a CPU's magazines have a lock, interrupts off, that nobody contends
 * for: others take it only to empty them (pressure, hotplug, a new map), which
 * needs no interrupt to that CPU. So it is a bit, taken in line: calls to
 * raw_spin_lock() would be 47 instructions of each fault and each free. The
 * cells' locks nest inside.
 */
#ifndef SOLOIST_MAGAZINE_H
#define SOLOIST_MAGAZINE_H

#include <linux/bit_spinlock.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#include "../group/group.h"
#include "store.h"

#define SOL_CLIPS	16u
#define SOL_ROUNDS	4u
#define SOL_MAGAZINES	4	/* of each CPU */
#define SOL_RETURNS	32
#define SOL_LOOKS	32u	/* cells that a filling looks at */

struct sol_clip {
	u32 n;
	u32 cell;
	u32 index;	/* of the cell among the group's cells */
	bool zero;	/* known to be */
	u32 pfn[SOL_ROUNDS];
};

struct sol_magazine {
	u32 next;	/* clip whose turn it is, ... */
	u32 clips;	/* ... of so many that were filled; 0: one */
	struct sol_clip clip[SOL_CLIPS];
};

/* What a CPU has at hand; bit 0 of @lock is the lock. */
struct sol_hand {
	unsigned long lock;
	u16 away;	/* group for which the near node had none, ... */
	u16 away_nid;	/* ... but this one, ... */
	u32 returns;
	unsigned long away_until;	/* ... before these jiffies */
	u32 returned[SOL_RETURNS];
	struct sol_magazine magazine[SOL_MAGAZINES];
} ____cacheline_aligned_in_smp;

DECLARE_PER_CPU(struct sol_hand, sol_hand);

/* Interrupts are off. */
static __always_inline void sol_hand_lock(struct sol_hand *hand)
	__acquires(bitlock)
{
	bit_spin_lock(0, &hand->lock);
}

static __always_inline void sol_hand_unlock(struct sol_hand *hand)
	__releases(bitlock)
{
	__bit_spin_unlock(0, &hand->lock);
}

/*
 * A clip with a frame of @cells on @nid, when the next one has none: another
 * one, or after filling from the lists; if @even, not while a cell whose turn it
 * is wants a refill. The lock is held. NULL: none.
 */
struct sol_clip *sol_magazine_fill(struct sol_magazine *m, struct sol_group *g,
				   const struct sol_cells *cells, int nid,
				   bool zero, bool even);

/*
 * Group @id, which rests on the nodes before, has frames on @nid: until the next
 * tick this CPU asks there first. Any context.
 */
void sol_magazine_away(u16 id, int nid);

/* The node to ask first for @g, to which @hand's ->away is; @home is near. */
int sol_magazine_node(const struct sol_hand *hand, const struct sol_group *g,
		      int home);

/* All magazines are empty for a moment, their frames in the lists. Any context. */
void sol_magazines_flush(void);

/*
 * The frame on top of @clip is not fit for a request: if it failed, it leaves,
 * so that it does not hide those under it. The lock is held.
 */
void sol_clip_unfit(struct sol_clip *clip);

/* Frames in all magazines, about. */
u64 sol_magazines_count(void);

/*
 * A page that we own was freed, after the kernel's checks; it is ours again.
 * False: it is not fit for that (forgotten), the buddy allocator shall have it.
 */
bool sol_magazine_put(struct page *page);

/* The clip whose turn it is. */
static __always_inline struct sol_clip *sol_magazine_turn(struct sol_magazine *m)
{
	u32 i = m->next;

	m->next = i + 1 < m->clips ? i + 1 : 0;
	return &m->clip[i];
}

/* Does it hold frames of a cell that @cells has on @nid? */
static __always_inline bool sol_clip_fits(const struct sol_clip *clip,
					  const struct sol_cells *cells,
					  int nid)
{
	return clip->n && clip->index >= cells->first[nid] &&
	       clip->index < cells->first[nid + 1] &&
	       cells->cell[clip->index] == clip->cell;
}

/* The node where @cells are, nearest to this CPU. */
static inline int sol_cells_home(const struct sol_cells *cells)
{
	int nid = numa_node_id();

	return nid < SOL_MAX_NODES ? cells->home[nid] : 0;
}

/**
 * sol_magazine_get() - a page for group @id from this CPU's magazines
 * @nid: on which node; NUMA_NO_NODE: the nearest that has the group's colours
 * @table: for a page table
 * @even: not while a cell whose turn it is wants a refill
 *
 * Interrupts are on. Return: a page, or NULL: none at hand nor in the first of
 * the group's lists.
 */
static __always_inline struct page *sol_magazine_get(u16 id, int nid, gfp_t gfp,
						     bool table, bool even)
{
	const struct sol_cells *cells;
	struct sol_magazine *m;
	struct sol_clip *clip;
	struct sol_hand *hand;
	struct sol_group *g;
	u32 pfn, cell;
	bool zero;

	local_irq_disable();
	hand = this_cpu_ptr(&sol_hand);
	sol_hand_lock(hand);
	g = group_get_fast(id);
	cells = g ? rcu_dereference_sched(g->cells) : NULL;
	if (unlikely(!cells))
		goto none;
	if (nid == NUMA_NO_NODE) {
		nid = sol_cells_home(cells);
		if (unlikely(hand->away == id))
			nid = sol_magazine_node(hand, g, nid);
		if (unlikely(!node_isset(nid, current->mems_allowed)))
			goto none;
	} else if (unlikely(nid >= SOL_MAX_NODES)) {
		goto none;	/* no map has it */
	}
	m = &hand->magazine[(u32)(id + nid) % SOL_MAGAZINES];
	clip = sol_magazine_turn(m);
	if (unlikely(!sol_clip_fits(clip, cells, nid))) {
		clip = sol_magazine_fill(m, g, cells, nid, gfp & __GFP_ZERO,
					 even);
		if (!clip)
			goto none;
	}
	pfn = clip->pfn[clip->n - 1];
	if (unlikely(!sol_frame_fit(pfn, table))) {
		sol_clip_unfit(clip);
		goto none;	/* the lists will find another */
	}
	clip->n--;
	cell = clip->cell;
	zero = clip->zero;
	sol_frames_use(&sol_store, cell, pfn, id);
	sol_group_charge(g, zero && gfp & __GFP_ZERO, table);
	sol_hand_unlock(hand);
	local_irq_enable();
	return sol_page_out(pfn, gfp, zero);
none:
	sol_hand_unlock(hand);
	local_irq_enable();
	return NULL;
}

#endif /* SOLOIST_MAGAZINE_H */
