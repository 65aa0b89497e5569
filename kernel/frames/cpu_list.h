/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Per-CPU lists: each CPU keeps a few free frames for the faults of the tasks that
 * run there. Most faults and frees then take no lock that other CPUs take, and
 * write no cache line that other CPUs write.
 *
 * A CPU has four lists. A group on a node always uses the same one of them, so that
 * groups that share a CPU seldom empty each other's list. A list consists of
 * batches, each with frames of one cell. A refill takes as many frames from each of
 * the group's cells on one node, beginning at the group's cursor, and pages are
 * handed out from one batch after the other. So neighbouring pages lie in different
 * banks, and all cells give the same share. If a cell has few frames left, supply is
 * asked for more (want.h). If a cell has none, a refill does not simply take more from
 * the others: the fault waits for supply, unless that has looked through the whole
 * cell lately and found nothing. If the near node is dry for the group, the CPU asks
 * the next node first until the next tick.
 *
 * A frame in a per-CPU list is on no cell's list and belongs to no group yet. Before
 * it is handed out, its cell is looked up where the group had it when the list was
 * filled. A cell of another group, or one that a new colour set dropped, is not
 * found there, and its frames are not used.
 *
 * Freed frames are gathered and return to their cells' lists together.
 *
 * Locking: the lists of a CPU have one lock, taken with interrupts off. Other CPUs
 * take it only to empty the lists (memory pressure, hotplug, a new map), so it is
 * hardly ever contended and needs no interrupt to that CPU. The lock is one bit and
 * is taken inline: raw_spin_lock() would cost 47 instructions for each fault and
 * each free. The locks of cells nest inside.
 */
#ifndef SOLOIST_CPU_LIST_H
#define SOLOIST_CPU_LIST_H

#include <linux/bit_spinlock.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#include "../compat/nodes.h"
#include "../group/group.h"
#include "store.h"

#define SOL_BATCHES		16u
#define SOL_BATCH_FRAMES	4u
#define SOL_CPU_LISTS		4	/* of each CPU */
#define SOL_FREED_MAX		32
#define SOL_SCAN_CELLS		32u	/* cells that one refill looks at */
#define SOL_CELL_LOW		16u	/* listed frames below which supply is asked */

/**
 * struct sol_batch - frames of one cell
 * @n: how many are left
 * @cell: their cell
 * @index: of the cell among the cells that the group had
 * @zero: they are known to be all zero
 * @pfn: their numbers; the last one is handed out first
 */
struct sol_batch {
	u32 n;
	u32 cell;
	u32 index;
	bool zero;
	u32 pfn[SOL_BATCH_FRAMES];
};

/**
 * struct sol_cpu_list - frames for the groups that use this list
 * @next: the batch that gives the next page
 * @n_batches: batches that the last refill filled; 0 counts as 1
 * @batch: the batches
 */
struct sol_cpu_list {
	u32 next;
	u32 n_batches;
	struct sol_batch batch[SOL_BATCHES];
};

/**
 * struct sol_cpu_lists - all lists of one CPU
 * @lock: bit 0 is the lock
 * @remote_group: a group for which the near node is dry
 * @remote_nid: the node where it did
 * @remote_until: jiffies: after that the near node is asked first again
 * @n_freed: frames in @freed
 * @freed: frames that were freed and are not back on their cells' lists yet
 * @list: the lists
 */
struct sol_cpu_lists {
	unsigned long lock;
	u16 remote_group;
	u16 remote_nid;
	u32 n_freed;
	unsigned long remote_until;
	u32 freed[SOL_FREED_MAX];
	struct sol_cpu_list list[SOL_CPU_LISTS];
} ____cacheline_aligned_in_smp;

DECLARE_PER_CPU(struct sol_cpu_lists, sol_cpu_lists);

/* For both, interrupts are off. */
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

/**
 * sol_cpu_list_refill() - find a batch when the next one does not fit
 * @list: of this CPU; its lock is held, interrupts are off
 * @g: the group; preemption is off
 * @cells: of the group
 * @nid: node to take frames of, below SOL_MAX_NODES
 * @zero: prefer frames that are known to be zero
 * @even: do not refill while one of the next cells has no frame listed and supply
 *	may find some
 *
 * Return: a batch of @list with a frame of @cells on @nid; NULL: there is none.
 */
struct sol_batch *sol_cpu_list_refill(struct sol_cpu_list *list,
				      struct sol_group *g,
				      const struct sol_cells *cells, int nid,
				      bool zero, bool even);

/**
 * sol_cpu_lists_go_remote() - ask another node first, until the next tick
 * @id: group for which all nearer nodes are dry
 * @nid: node where it has frames
 *
 * Of this CPU. Any context.
 */
void sol_cpu_lists_go_remote(u16 id, int nid);

/**
 * sol_cpu_lists_node() - the node to ask first for the remote group
 * @lists: of this CPU; @g is their ->remote_group
 * @g: the group
 * @local: the nearest node where it has cells
 *
 * Return: @local, or ->remote_nid while that holds.
 */
int sol_cpu_lists_node(const struct sol_cpu_lists *lists,
		       const struct sol_group *g, int local);

/* Return all frames of all CPUs to their cells' lists. Any context. */
void sol_cpu_lists_flush(void);

/* Frames that were freed on this CPU return to their cells' lists. Any context. */
void sol_cpu_list_settle(void);

/**
 * sol_batch_drop_unfit() - the next frame of a batch can't be handed out
 * @batch: the lock of its list is held
 *
 * A frame that failed leaves the batch, so that it does not hide those below it.
 */
void sol_batch_drop_unfit(struct sol_batch *batch);

/* Frames in the lists of all CPUs, about. */
u64 sol_cpu_lists_count(void);

/**
 * sol_cpu_list_put() - take back a page that was freed
 * @page: one that we own, after the kernel's checks
 *
 * Any context. Return: true: the page is ours again; false: it is not fit for
 * that, and the buddy allocator shall have it.
 */
bool sol_cpu_list_put(struct page *page);

/* The batch that gives the next page. */
static __always_inline struct sol_batch *
sol_cpu_list_next(struct sol_cpu_list *list)
{
	u32 i = list->next;

	list->next = i + 1 < list->n_batches ? i + 1 : 0;
	return &list->batch[i];
}

/* Does @batch hold frames of a cell that @cells has on @nid? */
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
 * sol_cpu_list_get() - a page from this CPU's lists
 * @id: the group
 * @nid: node; NUMA_NO_NODE: the nearest one where the group has cells
 * @gfp: of the request; __GFP_ZERO: the page must be zero
 * @use: what the page is for
 * @even: as for sol_cpu_list_refill()
 *
 * Interrupts are on. Return: a page, as sol_page_out() makes it; NULL: neither this CPU's
 * lists nor the first lists of the group's cells have one.
 */
static __always_inline struct page *sol_cpu_list_get(u16 id, int nid, gfp_t gfp,
						     enum sol_page_use use, bool even)
{
	const struct sol_cells *cells;
	struct sol_cpu_list *list;
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
		if (unlikely(!sol_task_may_use(current, nid)))
			goto none;
	} else if (unlikely(nid >= SOL_MAX_NODES)) {
		goto none;	/* no map has it */
	}
	list = &lists->list[(u32)(id + nid) % SOL_CPU_LISTS];
	batch = sol_cpu_list_next(list);
	if (unlikely(!sol_batch_fits(batch, cells, nid))) {
		batch = sol_cpu_list_refill(list, g, cells, nid,
					    gfp & __GFP_ZERO, even);
		if (!batch)
			goto none;
	}
	pfn = batch->pfn[batch->n - 1];
	if (unlikely(!sol_frame_fit(pfn, use))) {
		sol_batch_drop_unfit(batch);
		goto none;	/* the lists will find another */
	}
	batch->n--;
	cell = batch->cell;
	zero = batch->zero;
	sol_frames_use(&sol_store, cell, pfn, id);
	sol_group_charge(g, zero && gfp & __GFP_ZERO,
			 use == SOL_USE_TABLE);
	sol_cpu_lists_unlock(lists);
	local_irq_enable();
	return sol_page_out(pfn, gfp, zero, use);
none:
	sol_cpu_lists_unlock(lists);
	local_irq_enable();
	return NULL;
}

#endif /* SOLOIST_CPU_LIST_H */
