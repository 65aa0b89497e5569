// SPDX-License-Identifier: GPL-2.0
/*
 * Remap: taking an address map into use, and another in its place.
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

/* Else local memory would be remote. */
static int check_nodes(const struct sol_map *map, struct sol_err *err)
{
	u32 i;

	for (i = 0; i < map->n_ranges; i++) {
		const struct sol_range *r = &map->range[i];
		u64 pfn = r->start >> SOL_FRAME_SHIFT;
		u64 end = r->end >> SOL_FRAME_SHIFT;

		for (; pfn < end; pfn += MAX_ORDER_NR_PAGES) {
			struct page *page = pfn_to_online_page(pfn);

			/* The nodes of holes are made up. */
			if (!page || PageReserved(page) ||
			    page_to_nid(page) == r->node)
				continue;
			snprintf(err->text, sizeof(err->text),
				 "address 0x%llx is on node %u by the map, but the kernel has it on node %d",
				 pfn << SOL_FRAME_SHIFT, r->node,
				 page_to_nid(page));
			return -EINVAL;
		}
	}
	return 0;
}

/* Frames in use become the system's own. */
static void forget_all(void)
{
	u32 pfn;

	for (pfn = 0; pfn < sol_store.n_frames; pfn++) {
		if (!(pfn % 65536))
			cond_resched();
		if (sol_store_owns(pfn_to_page(pfn)))
			sol_store_forget(pfn_to_page(pfn));
	}
}

static struct sol_cell_state *sites_new(const struct sol_map *map)
{
	struct sol_cell_state *sites;
	u32 i;

	sites = kvcalloc(map->n_cells, sizeof(*sites), GFP_KERNEL);
	for (i = 0; sites && i < map->n_cells; i++) {
		raw_spin_lock_init(&sites[i].lock);
		sites[i].refill_after = jiffies;
	}
	return sites;
}

/*
 * Nothing is handed out without groups, but for pages that are migrated; and
 * once nothing is in use, nothing is freed to us. Whoever is at it still is in a
 * section of the lists or has preemption off: twice round, and none is left.
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

/* What a map needs; all or nothing. */
struct room {
	struct sol_cell *cell;
	struct sol_cell_state *sites;
	struct sol_solver *solvers;
};

static void room_free(struct room *room)
{
	kvfree(room->cell);
	kvfree(room->sites);
	kvfree(room->solvers);
}

static int room_for(const struct sol_map *map, struct room *room,
		    struct sol_err *err)
{
	room->cell = kvcalloc(map->n_cells, sizeof(*room->cell), GFP_KERNEL);
	room->sites = sites_new(map);
	room->solvers = sol_solvers_new(map);
	if (room->cell && room->sites && room->solvers)
		return 0;
	room_free(room);
	snprintf(err->text, sizeof(err->text),
		 "no memory for the lists of %u cells", map->n_cells);
	return -ENOMEM;
}

int sol_remap(const struct sol_map *map, struct sol_err *err)
{
	struct room room = { 0 };
	int ret = 0, users;

	if (map) {
		users = sol_lists_begin();	/* see keep/unplug.c */
		ret = check_nodes(map, err);
		sol_lists_end(users);
		ret = ret ?: room_for(map, &room, err);
	}
	if (ret)
		return ret;
	if (sol_store.map)
		empty();
	WRITE_ONCE(sol_store.map, NULL);
	synchronize_srcu(&sol_lists_users);
	swap(room.cell, sol_store.cell);
	swap(room.sites, sol_cell_states);
	sol_solvers_install(room.solvers, map ? map->n_ranges : 0);
	room.solvers = NULL;
	if (map) {
		sol_frames_init(&sol_store, map, sol_store.frame,
				sol_store.owned, sol_store.n_frames,
				sol_store.cell);
		sol_store.swap_bit = sol_frames_swap_bit(map);
	}
	room_free(&room);
	return 0;
}
