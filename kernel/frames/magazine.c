// SPDX-License-Identifier: GPL-2.0
/*
 * Magazines: filling one from the lists, gathering what is freed, emptying all.
 * See magazine.h.
 */
#include <linux/cpuhotplug.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "../compat/debug.h"
#include "../parts.h"
#include "magazine.h"

/* Cells that a hand-out looks at before lists are filled. */
#define LOOKS	16

DEFINE_PER_CPU(struct sol_hand, sol_hand);

/* ---- Emptying ---- */

static void clip_flush(struct sol_clip *clip)
{
	raw_spinlock_t *lock;

	if (!clip->n)
		return;
	lock = sol_cell_lock(clip->cell);
	raw_spin_lock(lock);
	while (clip->n)
		sol_frames_put(&sol_store, clip->pfn[--clip->n], clip->zero);
	raw_spin_unlock(lock);
}

static void magazine_flush(struct sol_magazine *m)
{
	u32 i;

	for (i = 0; i < SOL_CLIPS; i++)
		clip_flush(&m->clip[i]);
}

/* Frames of one cell under one lock: the first that is left, and its like. */
static void returns_flush(struct sol_hand *hand)
{
	while (hand->returns) {
		u32 cell = sol_store.frame[hand->returned[0]].tag &
			   SOL_TAG_CELL;
		u32 i, left = 0;

		raw_spin_lock(sol_cell_lock(cell));
		for (i = 0; i < hand->returns; i++) {
			u32 pfn = hand->returned[i];

			if ((sol_store.frame[pfn].tag & SOL_TAG_CELL) == cell)
				sol_frames_put(&sol_store, pfn, false);
			else
				hand->returned[left++] = pfn;
		}
		raw_spin_unlock(sol_cell_lock(cell));
		hand->returns = left;
	}
}

static void hand_flush(struct sol_hand *hand)
{
	unsigned long flags;
	u32 i;

	raw_spin_lock_irqsave(&hand->lock, flags);
	returns_flush(hand);
	for (i = 0; i < SOL_MAGAZINES; i++)
		magazine_flush(&hand->magazine[i]);
	raw_spin_unlock_irqrestore(&hand->lock, flags);
}

/* CPUs that are gone left theirs behind. */
void sol_magazines_flush(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hand_flush(per_cpu_ptr(&sol_hand, cpu));
}

int sol_magazines_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		raw_spin_lock_init(&per_cpu_ptr(&sol_hand, cpu)->lock);
	return 0;
}

void sol_magazines_exit(void)
{
}

u64 sol_magazines_count(void)
{
	u64 sum = 0;
	int cpu, i, k;

	for_each_possible_cpu(cpu) {
		const struct sol_hand *hand = per_cpu_ptr(&sol_hand, cpu);

		sum += READ_ONCE(hand->returns);
		for (i = 0; i < SOL_MAGAZINES; i++)
			for (k = 0; k < SOL_CLIPS; k++)
				sum += READ_ONCE(hand->magazine[i].clip[k].n);
	}
	return sum;
}

/* ---- Filling ---- */

static bool clip_fill(struct sol_clip *clip, u32 cell, u32 index, bool zero)
{
	raw_spinlock_t *lock = sol_cell_lock(cell);

	if (!sol_cell_listed(cell))
		return false;
	clip->cell = cell;
	clip->index = index;
	raw_spin_lock(lock);
	clip->n = sol_frames_hold(&sol_store, cell, zero, clip->pfn, SOL_ROUNDS,
				  &clip->zero);
	raw_spin_unlock(lock);
	return clip->n;
}

/* From the cells of the group on @nid, beginning at its cursor. */
static void fill(struct sol_magazine *m, struct sol_group *g,
		 const struct sol_cells *cells, int nid, bool zero)
{
	struct sol_turn *turn = &g->turn[nid];
	u32 first, n, i, looks, clips = 0;

	first = cells->first[nid];
	n = cells->first[nid + 1] - first;
	if (!n)
		return;
	i = READ_ONCE(turn->cursor) % n;
	/* Few cells may fill several clips each. */
	looks = clamp(n, SOL_CLIPS, LOOKS);
	for (; looks && clips < SOL_CLIPS; looks--) {
		clips += clip_fill(&m->clip[clips], cells->cell[first + i],
				   first + i, zero);
		i = sol_cells_next(i, n, cells->per_set[nid]);
	}
	WRITE_ONCE(turn->cursor, i);
}

static struct sol_clip *find(struct sol_magazine *m,
			     const struct sol_cells *cells, int nid)
{
	u32 i;

	for (i = 0; i < SOL_CLIPS; i++)
		if (sol_clip_fits(&m->clip[i], cells, nid))
			return &m->clip[i];
	return NULL;
}

struct sol_clip *sol_magazine_fill(struct sol_magazine *m, struct sol_group *g,
				   const struct sol_cells *cells, int nid,
				   bool zero)
{
	struct sol_clip *clip = find(m, cells, nid);

	if (clip)
		return clip;
	magazine_flush(m);
	fill(m, g, cells, nid, zero);
	return find(m, cells, nid);
}

/* ---- Taking back ---- */

bool sol_magazine_put(struct page *page)
{
	u64 pfn = page_to_pfn(page);
	struct sol_hand *hand;
	unsigned long flags;

	if (unlikely(sol_page_bad(page))) {
		sol_store_forget(page);
		return false;
	}
	local_irq_save(flags);
	if (unlikely(sol_store_hold(pfn) == SOL_NO_CELL)) {
		local_irq_restore(flags);	/* a new map has forgotten it */
		return false;
	}
	hand = this_cpu_ptr(&sol_hand);
	raw_spin_lock(&hand->lock);
	if (hand->returns == SOL_RETURNS)
		returns_flush(hand);
	hand->returned[hand->returns++] = pfn;
	raw_spin_unlock(&hand->lock);
	local_irq_restore(flags);
	return true;
}
