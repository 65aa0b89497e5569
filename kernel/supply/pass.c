// SPDX-License-Identifier: GPL-2.0
/* A pass: the cells that it looks at, and what it counts. */
#include <linux/gfp.h>

#include "../frames/giveback.h"
#include "../hook/hook.h"
#include "../trace/trace.h"
#include "pass.h"

bool sol_pass_target(const struct sol_pass *p, u32 steps, struct sol_target *t)
{
	struct node_cells c;
	bool there = false;

	with_node_cells(&c, p->id, p->nid) {
		u32 goal = max(READ_ONCE(c.node->goal), SOL_GOAL_MIN);

		if (steps >= c.n)
			continue;
		t->cell = c.cell[sol_cells_advance(p->begin % c.n, c.n,
						   c.per_set, steps)];
		t->mark = max3(goal / c.n, SOL_CELL_MARK,
			       READ_ONCE(sol_cell_states[t->cell].reserve));
		there = true;
	}
	return there;
}

bool sol_pass_any_listed(const struct sol_pass *p)
{
	struct sol_target t;
	bool any = false;
	int users = sol_lists_begin();
	u32 i;

	for (i = 0; !any && sol_pass_target(p, i, &t); i++)
		any = sol_cell_listed(t.cell);
	sol_lists_end(users);
	return any;
}

void sol_pass_note_refill(const struct sol_pass *p, u32 cell, u32 got, u64 ns)
{
	trace_soloist_refill(p->id, cell, got, ns);
	sol_with_group(g, p->id) {
		sol_group_add(g, refills, 1);
		sol_group_add(g, refill[sol_time_order(ns)], 1);
	}
}

void sol_pass_make_room(const struct sol_pass *p, bool at_once)
{
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | __GFP_THISNODE | __GFP_NORETRY |
		    __GFP_NOWARN;
	struct page *page;

	if (!at_once)
		gfp &= ~__GFP_DIRECT_RECLAIM;
	page = alloc_pages_node(p->nid, gfp, 0);
	if (page)
		__free_page(page);
}
