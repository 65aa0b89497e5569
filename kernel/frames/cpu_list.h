/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Magazines: a few frames at lists on each CPU, for the faults of the tasks that
 * run there, so that most faults and frees take no lock that others take and
 * write no line that others write.
 *
 * A CPU has some magazines, and a group on a node always uses the same one, so
 * that groups that take steps on a CPU seldom empty each other's. A list has
 * some n_batches, each with frames of one cell; a filling takes cells of the group
 * in turn, on one node, as many frames of each, and pages are handed out from
 * the n_batches in turn, so that neighbours lie in different banks and all cells
 * give alike. A cell without a frame in its list is no reason to take from the
 * others: the ladder gets it some first, unless all of the cell was looked
 * through in vain lately. Where all is taken on the near node and the group backs_off
 * there, the next node's is asked first, for a tick.
 *
 * A frame in a list has left its list and belongs to nobody yet. Before one
 * is handed out, its cell is looked up where the group had it when the list
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

#define SOL_BATCHES	16u
#define SOL_BATCH_FRAMES	4u
#define SOL_CPU_LISTS	4	/* of each CPU */
#define SOL_FREED_MAX	32
#define SOL_SCAN_CELLS	32u	/* cells that a filling left at */

struct sol_batch {
	u32 n;
	u32 cell;
	u32 index;	/* of the cell among the group's cells */
	bool zero;	/* known to be */
	u32 pfn[SOL_BATCH_FRAMES];
};

struct sol_cpu_list {
	u32 next;	/* batch whose turn it is, ... */
	u32 n_batches;	/* ... of so many that were filled; 0: one */
	struct sol_batch batch[SOL_BATCHES];
};

/* What a CPU has at lists; bit 0 of @lock is the lock. */
struct sol_cpu_lists {
	unsigned long lock;
	u16 remote_group;	/* group for which the near node had none, ... */
	u16 remote_nid;	/* ... but this one, ... */
	u32 n_freed;
	unsigned long remote_until;	/* ... before these jiffies */
	u32 freed[SOL_FREED_MAX];
	struct sol_cpu_list list[SOL_CPU_LISTS];
} ____cacheline_aligned_in_smp;

DECLARE_PER_CPU(struct sol_cpu_lists, sol_cpu_lists);

/* Interrupts are off. */
static __always_inline void sol_cpu_lists_lock(struct sol_cpu_lists *lists)
	__acquires(bitlock)
{
	bit_spin_lock(0, &lists->lock);
}

static __always_inline void sol_cpu_lists_unlock(struct sol_cpu_lists *lists)
	__releases(bitlock)
{
	__bit_spin_unlock(0, &lists->lock);
}

/*
 * A batch with a frame of @cells on @nid, when the next one has none: another
 * one, or after filling from the lists; if @even, not while a cell whose turn it
 * is wants a refill. The lock is held. NULL: none.
 */
struct sol_batch *sol_cpu_list_refill(struct sol_cpu_list *m, struct sol_group *g,
				      const struct sol_cells *cells, int nid,
				      bool zero, bool even);

/*
 * Group @id, which backs_off on the nodes before, has frames on @nid: until the next
 * tick this CPU asks there first. Any context.
 */
void sol_cpu_lists_go_remote(u16 id, int nid);

/* The node to ask first for @g, to which @lists's ->remote_group is; @local is near. */
int sol_cpu_lists_node(const struct sol_cpu_lists *lists, const struct sol_group *g,
		       int local);

/* All magazines are empty for a moment, their frames in the lists. Any context. */
void sol_cpu_lists_flush(void);

/*
 * The frame on top of @batch is not fit for a request: if it failed, it leaves,
 * so that it does not hide those under it. The lock is held.
 */
void sol_batch_drop_unfit(struct sol_batch *batch);

/* Frames in all magazines, about. */
u64 sol_cpu_lists_count(void);

/*
 * A page that we own was freed, after the kernel's checks; it is ours again.
 * False: it is not fit for that (forgotten), the buddy allocator shall have it.
 */
bool sol_cpu_list_put(struct page *page);

/* The batch whose turn it is. */
static __always_inline struct sol_batch *sol_cpu_list_next(struct sol_cpu_list *m)
{
	u32 i = m->next;

	m->next = i + 1 < m->n_batches ? i + 1 : 0;
	return &m->batch[i];
}

/* Does it hold frames of a cell that @cells has on @nid? */
static __always_inline bool sol_batch_fits(const struct sol_batch *batch,
					   const struct sol_cells *cells,
					   int nid)
{
	return batch->n && batch->index >= cells->first[nid] &&
	       batch->index < cells->first[nid + 1] &&
	       cells->cell[batch->index] == batch->cell;
}

/* The node where @cells are, nearest to this CPU. */
static inline int sol_cells_local_node(const struct sol_cells *cells)
{
	int nid = numa_node_id();

	return nid < SOL_MAX_NODES ? cells->nearest[nid] : 0;
}

/**
 * sol_cpu_list_get() - a page for group @id from this CPU's magazines
 * @nid: on which node; NUMA_NO_NODE: the nearest that has the group's colours
 * @table: for a page table
 * @even: not while a cell whose turn it is wants a refill
 *
 * Interrupts are on. Return: a page, or NULL: none at lists nor in the first of
 * the group's lists.
 */
static __always_inline struct page *sol_cpu_list_get(u16 id, int nid, gfp_t gfp,
						     bool table, bool even)
{
	const struct sol_cells *cells;
	struct sol_cpu_list *m;
	struct sol_batch *batch;
	struct sol_cpu_lists *lists;
	struct sol_group *g;
	u32 pfn, cell;
	bool zero;

	local_irq_disable();
	lists = this_cpu_ptr(&sol_cpu_lists);
	sol_cpu_lists_lock(lists);
	g = group_get_fast(id);
	cells = g ? rcu_dereference_sched(g->cells) : NULL;
	if (unlikely(!cells))
		goto none;
	if (nid == NUMA_NO_NODE) {
		nid = sol_cells_local_node(cells);
		if (unlikely(lists->remote_group == id))
			nid = sol_cpu_lists_node(lists, g, nid);
		if (unlikely(!node_isset(nid, current->mems_allowed)))
			goto none;
	} else if (unlikely(nid >= SOL_MAX_NODES)) {
		goto none;	/* no map has it */
	}
	m = &lists->list[(u32)(id + nid) % SOL_CPU_LISTS];
	batch = sol_cpu_list_next(m);
	if (unlikely(!sol_batch_fits(batch, cells, nid))) {
		batch = sol_cpu_list_refill(m, g, cells, nid, gfp & __GFP_ZERO,
					    even);
		if (!batch)
			goto none;
	}
	pfn = batch->pfn[batch->n - 1];
	if (unlikely(!sol_frame_fit(pfn, table))) {
		sol_batch_drop_unfit(batch);
		goto none;	/* the lists will find another */
	}
	batch->n--;
	cell = batch->cell;
	zero = batch->zero;
	sol_frames_use(&sol_store, cell, pfn, id);
	sol_group_charge(g, zero && gfp & __GFP_ZERO, table);
	sol_cpu_lists_unlock(lists);
	local_irq_enable();
	return sol_page_out(pfn, gfp, zero);
none:
	sol_cpu_lists_unlock(lists);
	local_irq_enable();
	return NULL;
}

#endif /* SOLOIST_MAGAZINE_H */
