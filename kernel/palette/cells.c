// SPDX-License-Identifier: GPL-2.0
/*
 * Cells: what the fault path needs of a group's colours, replaced as a whole.
 *
 * Locking: sol_group_mutex. Faults read a group's cells under RCU. The old cells are
 * freed a grace period after new ones took their place.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "../frames/store.h"
#include "../group/group.h"
#include "cells.h"
#include "map.h"

/* The node nearest to @node that has cells. */
static u8 nearest_node(const struct sol_cells *cells, u32 node)
{
	u32 best = node, i;

	if (!node_possible(node) ||
	    cells->first[node] < cells->first[node + 1])
		return node;
	for (i = 0; i < SOL_MAX_NODES; i++) {
		if (cells->first[i] == cells->first[i + 1] || !node_possible(i))
			continue;
		if (best == node || node_distance(node, i) <
				    node_distance(node, best))
			best = i;
	}
	return best;
}

struct sol_cells *sol_cells_new(const struct sol_colors *colors)
{
	const struct sol_map *map = sol_map_in_use();
	struct sol_cells *cells;
	u32 n, i, node = 0;
	const u32 *first;

	if (!sol_colors_restrict(colors))
		return NULL;
	n = sol_colors_cells(map, colors, NULL, 0);
	cells = kvzalloc(struct_size(cells, cell, n), GFP_KERNEL);
	if (!cells)
		return ERR_PTR(-ENOMEM);
	cells->n = sol_colors_cells(map, colors, cells->cell, n);
	for (i = 0; i < n; i++)
		for (; node < sol_map_set_node(map, cells->cell[i] /
					       map->n_llc); node++)
			cells->first[node + 1] = i;
	while (node < SOL_MAX_NODES)
		cells->first[++node] = n;
	for (node = 0; node < SOL_MAX_NODES; node++) {
		first = cells->first + node;
		if (first[0] < first[1])
			cells->per_set[node] =
				sol_cells_per_set(map, cells->cell + first[0],
						  first[1] - first[0]);
	}
	for (node = 0; node < SOL_MAX_NODES; node++)
		cells->nearest[node] = nearest_node(cells, node);
	return cells;
}

/* The shrinker leaves each of @cells @frames for the group from now on. */
static void cells_reserve(struct sol_cells *cells, u32 frames)
{
	u32 i;

	if (!cells || cells->reserve == frames)
		return;
	for (i = 0; i < cells->n; i++)
		sol_store_keep(cells->cell[i], frames - cells->reserve);
	cells->reserve = frames;
}

static u32 reserve_of_each(const struct sol_group *group,
			   const struct sol_cells *cells)
{
	return cells && cells->n ? DIV_ROUND_UP(group->reserve, cells->n) : 0;
}

/* Supply looks again: the new cells may have what the old ones had not. */
void sol_cells_publish(struct sol_group *group, struct sol_cells *cells)
{
	const struct sol_map *map = sol_map_in_use();
	struct sol_cells *old;
	u32 i;

	old = rcu_replace_pointer(group->cells, cells,
				  lockdep_is_held(&sol_group_mutex));
	cells_reserve(old, 0);
	cells_reserve(cells, reserve_of_each(group, cells));
	for (i = 0; i < map->n_nodes; i++) {
		WRITE_ONCE(group->node[i].dry_until, jiffies);
		WRITE_ONCE(group->node[i].vain, 0);
		WRITE_ONCE(group->node[i].outcome, SOL_FOUND);
		WRITE_ONCE(group->node[i].last.stage, 0);
		WRITE_ONCE(group->node[i].last.looks, 0);
	}
	if (old)
		kvfree_rcu(old, rcu);
}

void sol_cells_reserve(struct sol_group *group)
{
	struct sol_cells *cells;

	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	cells_reserve(cells, reserve_of_each(group, cells));
}
