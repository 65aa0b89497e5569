/* SPDX-License-Identifier: GPL-2.0 */
/* The cells that a group has on one node, and where the group stands there. */
#ifndef SOLOIST_NODE_CELLS_H
#define SOLOIST_NODE_CELLS_H

#include "group.h"

/**
 * struct node_cells - the cells of a group on a node
 * @cells: all of the group's
 * @cell: those of the node, ascending
 * @n: how many, at least 1
 * @per_set: sol_cells_per_set() of them
 * @node: where the group stands on the node
 *
 * Valid while preemption is off or RCU's read lock is held.
 */
struct node_cells {
	const struct sol_cells *cells;
	const u32 *cell;
	u32 n;
	u32 per_set;
	struct sol_node_state *node;
};

/* Fill @c; false: group @id has no cell on @nid. */
static inline bool node_cells_find(struct node_cells *c, u16 id, int nid)
{
	struct sol_group *group = group_get_fast(id);

	c->cells = group ? rcu_dereference_check(group->cells,
						 rcu_read_lock_sched_held()) :
			   NULL;
	if (!c->cells || nid >= SOL_MAX_NODES)
		return false;
	c->cell = c->cells->cell + c->cells->first[nid];
	c->n = c->cells->first[nid + 1] - c->cells->first[nid];
	if (!c->n)
		return false;
	c->per_set = c->cells->per_set[nid];
	c->node = &group->node[nid];
	return true;
}

static inline bool node_cells_enter(struct node_cells *c, u16 id, int nid)
{
	preempt_disable();
	if (node_cells_find(c, id, nid))
		return true;
	preempt_enable();
	return false;
}

static inline bool node_cells_leave(void)
{
	preempt_enable();
	return false;
}

/*
 * with_node_cells(c, id, nid) { ... }: as sol_with_group(), with @c, a struct
 * node_cells of the caller's. Not at all if the group has no cell on the node.
 */
#define with_node_cells(c, id, nid)					\
	for (bool entered_ = node_cells_enter(c, id, nid); entered_;	\
	     entered_ = node_cells_leave())

/* Index of the cell @steps after the group's cursor. */
static inline u32 node_cells_index(const struct node_cells *c, u32 steps)
{
	return sol_cells_advance(READ_ONCE(c->node->cursor) % c->n, c->n,
				 c->per_set, steps);
}

#endif /* SOLOIST_NODE_CELLS_H */
