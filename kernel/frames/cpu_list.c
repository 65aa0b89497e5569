// SPDX-License-Identifier: GPL-2.0
/*
 * Per-CPU lists: filling one from the cells' lists, gathering freed frames, emptying
 * all. How they work and their locking are in cpu_list.h.
 */
#include <linux/cpuhotplug.h>
#include <linux/jiffies.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "../compat/freed.h"
#include "cpu_list.h"
#include "want.h"

DEFINE_PER_CPU(struct sol_cpu_lists, sol_cpu_lists);

/* ---- Emptying ---- */

/* All but @keep frames of @batch return to their cell's list. */
static void batch_trim(struct sol_batch *batch, u32 keep)
{
	u32 n = batch->n;

	if (n <= keep)
		return;
	sol_cell_lock(batch->cell);
	while (batch->n > keep)
		sol_frames_put(&sol_store, batch->pfn[--batch->n], batch->zero);
	sol_cell_unlock(batch->cell, n - keep);
}

static void list_flush(struct sol_cpu_list *list)
{
	u32 i;

	for (i = 0; i < SOL_BATCHES; i++)
		batch_trim(&list->batch[i], 0);
}

/* The cell of the @i-th freed frame; SOL_NO_CELL behind the last one. */
static u32 cell_of_freed(const struct sol_cpu_lists *lists, u32 i)
{
	if (i == lists->n_freed)
		return SOL_NO_CELL;
	return sol_frames_at(&sol_store, lists->freed[i])->tag & SOL_TAG_CELL;
}

/*
 * Successive frames of one cell return under one lock. Sorting all frames by cell
 * would cost more than the locks, which are not contended.
 */
static void freed_flush(struct sol_cpu_lists *lists)
{
	u32 i = 0, first, cell, next = cell_of_freed(lists, i);

	while (next != SOL_NO_CELL) {
		cell = next;
		first = i;
		sol_cell_lock(cell);
		do {
			sol_frames_put(&sol_store, lists->freed[i++], false);
			next = cell_of_freed(lists, i);
		} while (next == cell);
		sol_cell_unlock(cell, i - first);
	}
	lists->n_freed = 0;
}

void sol_cpu_list_settle(void)
{
	struct sol_cpu_lists *lists;
	unsigned long flags;

	local_irq_save(flags);
	lists = this_cpu_ptr(&sol_cpu_lists);
	sol_cpu_lists_lock(lists);
	freed_flush(lists);
	sol_cpu_lists_unlock(lists);
	local_irq_restore(flags);
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

/* CPUs that went offline have left frames behind. A trace shows it by its name. */
noinline void sol_cpu_lists_flush(void)
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
		const struct sol_cpu_lists *lists;

		lists = per_cpu_ptr(&sol_cpu_lists, cpu);
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
	if (!sol_cell_listed(cell))
		return false;
	batch->cell = cell;
	batch->index = index;
	sol_cell_lock(cell);
	batch->n = sol_frames_hold(&sol_store, cell, zero, batch->pfn,
				   SOL_BATCH_FRAMES, &batch->zero);
	sol_cell_unlock(cell, -(long)batch->n);
	return batch->n;
}

/* A scan over the cells of a group on a node, from the group's cursor on. */
struct scan {
	struct sol_node_state *node;
	const u32 *cell;
	u32 first;	/* index of the node's first cell among the group's */
	u32 n;
	u32 per_set;
	u32 left;	/* cells to look at; few cells fill several batches each */
};

static bool scan_begin(struct scan *scan, struct sol_group *g,
		       const struct sol_cells *cells, int nid)
{
	scan->node = &g->node[nid];
	scan->first = cells->first[nid];
	scan->cell = cells->cell + scan->first;
	scan->n = cells->first[nid + 1] - scan->first;
	scan->per_set = cells->per_set[nid];
	scan->left = clamp(scan->n, SOL_BATCHES, SOL_SCAN_CELLS);
	return scan->n;
}

/* Would fill() pass over a cell for which supply may find frames? */
static bool wants_supply(const struct scan *scan)
{
	u32 i = READ_ONCE(scan->node->cursor) % scan->n, left, listed = 0;

	for (left = scan->left; left && listed < SOL_BATCHES; left--) {
		if (sol_cell_listed(scan->cell[i]))
			listed++;
		else if (!sol_cell_backs_off(scan->cell[i]))
			return true;
		i = sol_cells_next(i, scan->n, scan->per_set);
	}
	return false;
}

/* May one of the next fills find a cell without frames? */
static bool runs_short(const struct scan *scan)
{
	u32 i = READ_ONCE(scan->node->cursor) % scan->n;
	u32 left = min(scan->n, SOL_BATCHES);

	for (; left; left--) {
		if (sol_cell_listed(scan->cell[i]) < SOL_CELL_LOW &&
		    !sol_cell_backs_off(scan->cell[i]))
			return true;
		i = sol_cells_next(i, scan->n, scan->per_set);
	}
	return false;
}

/* Take as many frames of each cell, so that all batches run out together. */
static void fill(struct sol_cpu_list *list, const struct scan *scan, bool zero)
{
	u32 i = READ_ONCE(scan->node->cursor) % scan->n;
	u32 left, k, least = SOL_BATCH_FRAMES;
	struct sol_batch *batch = list->batch;

	for (left = scan->left; left && batch < list->batch + SOL_BATCHES; left--) {
		if (batch_fill(batch, scan->cell[i], scan->first + i, zero)) {
			least = min(least, batch->n);
			batch++;
		}
		i = sol_cells_next(i, scan->n, scan->per_set);
	}
	WRITE_ONCE(scan->node->cursor, i);
	list->next = 0;
	list->n_batches = batch - list->batch;
	for (k = 0; k < list->n_batches; k++)
		batch_trim(&list->batch[k], least);
}

static struct sol_batch *find(struct sol_cpu_list *list,
			      const struct sol_cells *cells, int nid)
{
	struct sol_batch *batch;
	u32 i;

	for (i = 0; i < SOL_BATCHES; i++) {
		batch = sol_cpu_list_next(list);
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

int sol_cpu_lists_node(const struct sol_cpu_lists *lists,
		       const struct sol_group *g, int local)
{
	if (time_before(jiffies, lists->remote_until) &&
	    sol_node_dry(&g->node[local]))
		return lists->remote_nid;
	return local;
}

struct sol_batch *sol_cpu_list_refill(struct sol_cpu_list *list,
				      struct sol_group *g,
				      const struct sol_cells *cells, int nid,
				      bool zero, bool even)
{
	struct sol_batch *batch = find(list, cells, nid);
	struct scan scan;

	if (batch || !scan_begin(&scan, g, cells, nid))
		return batch;
	if (even && !sol_node_dry(scan.node) && wants_supply(&scan))
		return NULL;
	list_flush(list);
	fill(list, &scan, zero);
	if (!sol_node_dry(scan.node) && runs_short(&scan))
		sol_want(g->id, nid);
	return find(list, cells, nid);
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
		local_irq_restore(flags);	/* a new map forgot it */
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
