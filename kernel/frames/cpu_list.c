// SPDX-License-Identifier: GPL-2.0
/*
 * Magazines: filling one from the lists, gathering what is freed, emptying all.
 * See cpu_list.h.
 */
#include <linux/cpuhotplug.h>
#include <linux/jiffies.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "../compat/freed.h"
#include "cpu_list.h"

DEFINE_PER_CPU(struct sol_cpu_lists, sol_cpu_lists);

/* ---- Emptying ---- */

/* All but @keep of its frames go back on their list. */
static void batch_trim(struct sol_batch *batch, u32 keep)
{
	raw_spinlock_t *lock;

	if (batch->n <= keep)
		return;
	lock = sol_cell_lock(batch->cell);
	raw_spin_lock(lock);
	while (batch->n > keep)
		sol_frames_put(&sol_store, batch->pfn[--batch->n], batch->zero);
	raw_spin_unlock(lock);
}

static void list_flush(struct sol_cpu_list *m)
{
	u32 i;

	for (i = 0; i < SOL_BATCHES; i++)
		batch_trim(&m->batch[i], 0);
}

/* The cell of the @i-th frame that was gathered; SOL_NO_CELL behind the last. */
static u32 cell_of_freed(const struct sol_cpu_lists *lists, u32 i)
{
	if (i == lists->n_freed)
		return SOL_NO_CELL;
	return sol_frames_at(&sol_store, lists->freed[i])->tag & SOL_TAG_CELL;
}

/*
 * Neighbours of one cell under one lock. Sorting them by cell would cost more
 * than the locks, for which nobody contends.
 */
static void freed_flush(struct sol_cpu_lists *lists)
{
	u32 i = 0, cell, next = cell_of_freed(lists, i);

	while (next != SOL_NO_CELL) {
		raw_spinlock_t *lock = sol_cell_lock(next);

		cell = next;
		raw_spin_lock(lock);
		do {
			sol_frames_put(&sol_store, lists->freed[i++], false);
			next = cell_of_freed(lists, i);
		} while (next == cell);
		raw_spin_unlock(lock);
	}
	lists->n_freed = 0;
}

static void lists_flush(struct sol_cpu_lists *lists)
{
	unsigned long flags;
	u32 i;

	local_irq_save(flags);
	sol_cpu_lists_lock(lists);
	freed_flush(lists);
	for (i = 0; i < SOL_CPU_LISTS; i++)
		list_flush(&lists->list[i]);
	sol_cpu_lists_unlock(lists);
	local_irq_restore(flags);
}

/* CPUs that are gone left theirs behind. */
void sol_cpu_lists_flush(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		lists_flush(per_cpu_ptr(&sol_cpu_lists, cpu));
}

u64 sol_cpu_lists_count(void)
{
	u64 sum = 0;
	int cpu, i, k;

	for_each_possible_cpu(cpu) {
		const struct sol_cpu_lists *lists = per_cpu_ptr(&sol_cpu_lists, cpu);

		sum += READ_ONCE(lists->n_freed);
		for (i = 0; i < SOL_CPU_LISTS; i++)
			for (k = 0; k < SOL_BATCHES; k++)
				sum += READ_ONCE(lists->list[i].batch[k].n);
	}
	return sum;
}

/* ---- Filling ---- */

static bool batch_fill(struct sol_batch *batch, u32 cell, u32 index, bool zero)
{
	raw_spinlock_t *lock = sol_cell_lock(cell);

	if (!sol_cell_listed(cell))
		return false;
	batch->cell = cell;
	batch->index = index;
	raw_spin_lock(lock);
	batch->n = sol_frames_hold(&sol_store, cell, zero, batch->pfn, SOL_BATCH_FRAMES,
				   &batch->zero);
	raw_spin_unlock(lock);
	return batch->n;
}

/* The cells of a group on a node, from its cursor on. */
struct scan {
	struct sol_node_state *node;
	const u32 *cell;
	u32 first;	/* index of the node's first cell among the group's */
	u32 n;
	u32 per_set;
	u32 left;	/* few cells may fill several batches each */
};

static bool scan_begin(struct scan *r, struct sol_group *g,
		       const struct sol_cells *cells, int nid)
{
	r->node = &g->node[nid];
	r->first = cells->first[nid];
	r->cell = cells->cell + r->first;
	r->n = cells->first[nid + 1] - r->first;
	r->per_set = cells->per_set[nid];
	r->left = clamp(r->n, SOL_BATCHES, SOL_SCAN_CELLS);
	return r->n;
}

/* Would a filling pass over a cell that a refill may find frames of? */
static bool wants_refill(const struct scan *r)
{
	u32 i = READ_ONCE(r->node->cursor) % r->n, left, listed = 0;

	for (left = r->left; left && listed < SOL_BATCHES; left--) {
		if (sol_cell_listed(r->cell[i]))
			listed++;
		else if (!sol_cell_backs_off(r->cell[i]))
			return true;
		i = sol_cells_next(i, r->n, r->per_set);
	}
	return false;
}

/* As many frames of each cell, so that all batches end together. */
static void fill(struct sol_cpu_list *m, const struct scan *r, bool zero)
{
	u32 i = READ_ONCE(r->node->cursor) % r->n, left, k, least = SOL_BATCH_FRAMES;
	struct sol_batch *batch = m->batch;

	for (left = r->left; left && batch < m->batch + SOL_BATCHES; left--) {
		if (batch_fill(batch, r->cell[i], r->first + i, zero)) {
			least = min(least, batch->n);
			batch++;
		}
		i = sol_cells_next(i, r->n, r->per_set);
	}
	WRITE_ONCE(r->node->cursor, i);
	m->next = 0;
	m->n_batches = batch - m->batch;
	for (k = 0; k < m->n_batches; k++)
		batch_trim(&m->batch[k], least);
}

static struct sol_batch *find(struct sol_cpu_list *m,
			      const struct sol_cells *cells, int nid)
{
	struct sol_batch *batch;
	u32 i;

	for (i = 0; i < SOL_BATCHES; i++) {
		batch = sol_cpu_list_next(m);
		if (sol_batch_fits(batch, cells, nid))
			return batch;
	}
	return NULL;
}

void sol_cpu_lists_go_remote(u16 id, int nid)
{
	struct sol_cpu_lists *lists;
	unsigned long flags;

	local_irq_save(flags);
	lists = this_cpu_ptr(&sol_cpu_lists);
	lists->remote_group = id;
	lists->remote_nid = nid;
	lists->remote_until = jiffies + 1;
	local_irq_restore(flags);
}

int sol_cpu_lists_node(const struct sol_cpu_lists *lists, const struct sol_group *g,
		       int local)
{
	if (time_before(jiffies, lists->remote_until) &&
	    sol_node_backs_off(&g->node[local]))
		return lists->remote_nid;
	return local;
}

struct sol_batch *sol_cpu_list_refill(struct sol_cpu_list *m, struct sol_group *g,
				      const struct sol_cells *cells, int nid,
				      bool zero, bool even)
{
	struct sol_batch *batch = find(m, cells, nid);
	struct scan r;

	if (batch || !scan_begin(&r, g, cells, nid))
		return batch;
	if (even && !sol_node_backs_off(r.node) && wants_refill(&r))
		return NULL;
	list_flush(m);
	fill(m, &r, zero);
	return find(m, cells, nid);
}

void sol_batch_drop_unfit(struct sol_batch *batch)
{
	u32 pfn = batch->pfn[batch->n - 1];

	if (!PageHWPoison(pfn_to_page(pfn)))
		return;
	batch->n--;
	sol_store_drop(pfn);
}

/* ---- Taking back ---- */

bool sol_cpu_list_put(struct page *page)
{
	u64 pfn = page_to_pfn(page);
	struct sol_cpu_lists *lists;
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
	lists = this_cpu_ptr(&sol_cpu_lists);
	sol_cpu_lists_lock(lists);
	if (lists->n_freed == SOL_FREED_MAX)
		freed_flush(lists);
	lists->freed[lists->n_freed++] = pfn;
	sol_cpu_lists_unlock(lists);
	local_irq_restore(flags);
	return true;
}
