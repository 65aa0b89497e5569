// SPDX-License-Identifier: GPL-2.0
/*
 * Magazines: filling one from the lists, gathering what is freed, emptying all.
 * See magazine.h.
 */
#include <linux/cpuhotplug.h>
#include <linux/jiffies.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "../compat/freed.h"
#include "magazine.h"

DEFINE_PER_CPU(struct sol_hand, sol_hand);

/* ---- Emptying ---- */

/* All but @keep of its frames go back on their list. */
static void clip_trim(struct sol_clip *clip, u32 keep)
{
	raw_spinlock_t *lock;

	if (clip->n <= keep)
		return;
	lock = sol_cell_lock(clip->cell);
	raw_spin_lock(lock);
	while (clip->n > keep)
		sol_frames_put(&sol_store, clip->pfn[--clip->n], clip->zero);
	raw_spin_unlock(lock);
}

static void magazine_flush(struct sol_magazine *m)
{
	u32 i;

	for (i = 0; i < SOL_CLIPS; i++)
		clip_trim(&m->clip[i], 0);
}

/* The cell of the @i-th frame that was gathered; SOL_NO_CELL behind the last. */
static u32 cell_of_return(const struct sol_hand *hand, u32 i)
{
	if (i == hand->returns)
		return SOL_NO_CELL;
	return sol_frames_at(&sol_store, hand->returned[i])->tag & SOL_TAG_CELL;
}

/*
 * Neighbours of one cell under one lock. Sorting them by cell would cost more
 * than the locks, for which nobody contends.
 */
static void returns_flush(struct sol_hand *hand)
{
	u32 i = 0, cell, next = cell_of_return(hand, i);

	while (next != SOL_NO_CELL) {
		raw_spinlock_t *lock = sol_cell_lock(next);

		cell = next;
		raw_spin_lock(lock);
		do {
			sol_frames_put(&sol_store, hand->returned[i++], false);
			next = cell_of_return(hand, i);
		} while (next == cell);
		raw_spin_unlock(lock);
	}
	hand->returns = 0;
}

static void hand_flush(struct sol_hand *hand)
{
	unsigned long flags;
	u32 i;

	local_irq_save(flags);
	sol_hand_lock(hand);
	returns_flush(hand);
	for (i = 0; i < SOL_MAGAZINES; i++)
		magazine_flush(&hand->magazine[i]);
	sol_hand_unlock(hand);
	local_irq_restore(flags);
}

/* CPUs that are gone left theirs behind. */
void sol_magazines_flush(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hand_flush(per_cpu_ptr(&sol_hand, cpu));
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

/* The cells of a group on a node, from its cursor on. */
struct round {
	struct sol_turn *turn;
	const u32 *cell;
	u32 first;	/* index of the node's first cell among the group's */
	u32 n;
	u32 per_set;
	u32 looks;	/* few cells may fill several clips each */
};

static bool round_begin(struct round *r, struct sol_group *g,
			const struct sol_cells *cells, int nid)
{
	r->turn = &g->turn[nid];
	r->first = cells->first[nid];
	r->cell = cells->cell + r->first;
	r->n = cells->first[nid + 1] - r->first;
	r->per_set = cells->per_set[nid];
	r->looks = clamp(r->n, SOL_CLIPS, SOL_LOOKS);
	return r->n;
}

/* Would a filling pass over a cell that a refill may find frames of? */
static bool wants_refill(const struct round *r)
{
	u32 i = READ_ONCE(r->turn->cursor) % r->n, looks, listed = 0;

	for (looks = r->looks; looks && listed < SOL_CLIPS; looks--) {
		if (sol_cell_listed(r->cell[i]))
			listed++;
		else if (!sol_cell_rests(r->cell[i]))
			return true;
		i = sol_cells_next(i, r->n, r->per_set);
	}
	return false;
}

/* As many frames of each cell, so that all clips end together. */
static void fill(struct sol_magazine *m, const struct round *r, bool zero)
{
	u32 i = READ_ONCE(r->turn->cursor) % r->n, looks, k, least = SOL_ROUNDS;
	struct sol_clip *clip = m->clip;

	for (looks = r->looks; looks && clip < m->clip + SOL_CLIPS; looks--) {
		if (clip_fill(clip, r->cell[i], r->first + i, zero)) {
			least = min(least, clip->n);
			clip++;
		}
		i = sol_cells_next(i, r->n, r->per_set);
	}
	WRITE_ONCE(r->turn->cursor, i);
	m->next = 0;
	m->clips = clip - m->clip;
	for (k = 0; k < m->clips; k++)
		clip_trim(&m->clip[k], least);
}

static struct sol_clip *find(struct sol_magazine *m,
			     const struct sol_cells *cells, int nid)
{
	struct sol_clip *clip;
	u32 i;

	for (i = 0; i < SOL_CLIPS; i++) {
		clip = sol_magazine_turn(m);
		if (sol_clip_fits(clip, cells, nid))
			return clip;
	}
	return NULL;
}

void sol_magazine_away(u16 id, int nid)
{
	struct sol_hand *hand;
	unsigned long flags;

	local_irq_save(flags);
	hand = this_cpu_ptr(&sol_hand);
	hand->away = id;
	hand->away_nid = nid;
	hand->away_until = jiffies + 1;
	local_irq_restore(flags);
}

int sol_magazine_node(const struct sol_hand *hand, const struct sol_group *g,
		      int home)
{
	if (time_before(jiffies, hand->away_until) &&
	    sol_turn_rests(&g->turn[home]))
		return hand->away_nid;
	return home;
}

struct sol_clip *sol_magazine_fill(struct sol_magazine *m, struct sol_group *g,
				   const struct sol_cells *cells, int nid,
				   bool zero, bool even)
{
	struct sol_clip *clip = find(m, cells, nid);
	struct round r;

	if (clip || !round_begin(&r, g, cells, nid))
		return clip;
	if (even && !sol_turn_rests(r.turn) && wants_refill(&r))
		return NULL;
	magazine_flush(m);
	fill(m, &r, zero);
	return find(m, cells, nid);
}

void sol_clip_unfit(struct sol_clip *clip)
{
	u32 pfn = clip->pfn[clip->n - 1];

	if (!PageHWPoison(pfn_to_page(pfn)))
		return;
	clip->n--;
	sol_store_drop(pfn);
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
	sol_hand_lock(hand);
	if (hand->returns == SOL_RETURNS)
		returns_flush(hand);
	hand->returned[hand->returns++] = pfn;
	sol_hand_unlock(hand);
	local_irq_restore(flags);
	return true;
}
