// SPDX-License-Identifier: GPL-2.0
/*
 * Remap: frames are coloured by another address map.
 *
 * Locking: see store.h. sol_group_mutex is held, and no group is alive.
 */
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "../hook/hook.h"
#include "giveback.h"
#include "remap.h"
#include "solver.h"
#include "store.h"

/* Is each frame on the node that the map says? Else local memory would be remote. */
static int check_nodes(const struct sol_map *map, struct sol_err *err)
{
	u32 i;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];
		u64 pfn = r->start >> PAGE_SHIFT;
		u64 end = min_t(u64, r->end >> PAGE_SHIFT, sol_store.n_frames);

		for (; pfn < end; pfn += MAX_ORDER_NR_PAGES) {
			struct page *page = pfn_to_online_page(pfn);

			/* The nodes of holes are made up. */
			if (!page || PageReserved(page) ||
			    sol_is_on_node(page, r->node))
				continue;
			snprintf(err->text, sizeof(err->text),
				 "address 0x%llx is on node %u by the map, but the kernel has it on node %d",
				 pfn << PAGE_SHIFT, r->node,
				 page_to_nid(page));
			return -EINVAL;
		}
	}
	return 0;
}

/* Frames in use become the system's. */
static void forget_all(void)
{
	u32 pfn;

	for (pfn = 0; pfn < sol_store.n_frames; pfn++) {
		if (!(pfn % 65536))
			cond_resched();
		if (sol_store.owned[pfn] && sol_store_owns(pfn_to_page(pfn)))
			sol_store_forget(pfn_to_page(pfn));
	}
}

static struct sol_cell_state *states_new(const struct sol_map *map)
{
	struct sol_cell_state *states;
	u32 i;

	states = kvcalloc(map->n_cells, sizeof(*states), GFP_KERNEL);
	for (i = 0; states && i < map->n_cells; i++) {
		raw_spin_lock_init(&states[i].lock);
		states[i].refill_after = states[i].move_after = jiffies;
		states[i].nid = sol_map_set_node(map, i / map->n_llc);
	}
	return states;
}

/*
 * Without groups nothing is handed out but to migrations, and once no frame is in
 * use none is freed to us. Those who are still at it are in a section of the lists
 * or have preemption off: after two rounds none is left.
 */
static void empty(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		forget_all();
		synchronize_srcu(&sol_lists_users);
		synchronize_rcu();
	}
	sol_store_drain_all();
}

/* Memory that a map needs, all of it or none. */
struct tables {
	struct sol_cell *cell;
	struct sol_cell_state *states;
	struct sol_solver *solvers;
};

static void tables_free(struct tables *tables)
{
	kvfree(tables->cell);
	kvfree(tables->states);
	kvfree(tables->solvers);
}

static int tables_new(const struct sol_map *map, struct tables *tables,
		    struct sol_err *err)
{
	tables->cell = kvcalloc(map->n_cells, sizeof(*tables->cell), GFP_KERNEL);
	tables->states = states_new(map);
	tables->solvers = sol_solvers_new(map, sol_store.n_frames);
	if (tables->cell && tables->states && tables->solvers)
		return 0;
	tables_free(tables);
	snprintf(err->text, sizeof(err->text),
		 "no memory for the lists of %u cells", map->n_cells);
	return -ENOMEM;
}

static void publish(const struct sol_map *map)
{
	struct sol_frames frames;

	sol_frames_init(&frames, map, sol_store.frame, sol_store.owned,
			sol_store.n_frames, sol_store.cell);
	sol_store.swap_bit = sol_frames_swap_bit(map);
	/* Last: who sees the map finds its tables (cells_begin()). */
	smp_store_release(&sol_store.map, map);
}

int sol_remap(const struct sol_map *map, struct sol_err *err)
{
	struct tables tables = { 0 };
	int ret = 0, users;

	if (map) {
		users = sol_lists_begin();	/* see keep/unplug.c */
		ret = check_nodes(map, err);
		sol_lists_end(users);
		ret = ret ?: tables_new(map, &tables, err);
	}
	if (ret)
		return ret;
	if (sol_store.map)
		empty();
	WRITE_ONCE(sol_store.map, NULL);
	synchronize_srcu(&sol_lists_users);
	swap(tables.cell, sol_store.cell);
	swap(tables.states, sol_cell_states);
	sol_solvers_install(tables.solvers, map ? map->n_ranges : 0);
	tables.solvers = NULL;
	if (map)
		publish(map);
	tables_free(&tables);
	return 0;
}
