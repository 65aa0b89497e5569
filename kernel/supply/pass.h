/* SPDX-License-Identifier: GPL-2.0 */
/* A pass of supply for one group on one node; supply.c says what a pass does. */
#ifndef SOLOIST_SUPPLY_PASS_H
#define SOLOIST_SUPPLY_PASS_H

#include "../frames/cpu_list.h"
#include "../frames/evacuate.h"
#include "../frames/want.h"
#include "../group/node_cells.h"

#define SOL_GOAL_MIN	256u	/* frames listed ahead ... */
#define SOL_GOAL_MAX	4096u
#define SOL_CELL_MARK	(2 * SOL_CELL_LOW)	/* ... at least so many in a cell */

/**
 * struct sol_pass - a pass for one group on one node
 * @wants: of the node
 * @evacuation: the node's, empty between two steps
 * @id: the group
 * @nid: the node
 * @begin: where the group's cursor was
 * @got: frames listed
 * @looked: frames in use that were looked at
 * @until: local_clock() when the answer is due, if there are frames
 * @told: it was given
 */
struct sol_pass {
	struct sol_wants *wants;
	struct sol_evacuation *evacuation;
	u16 id;
	int nid;
	u32 begin;
	u32 got;
	u32 looked;
	u64 until;
	bool told;
};

/**
 * struct sol_target - what a step of a pass needs to know of a cell
 * @cell: the cell
 * @mark: frames that the cell shall have at least, by the node's goal
 */
struct sol_target {
	u32 cell;
	u32 mark;
};

/**
 * sol_pass_target() - the cell @steps after where the pass began
 * @p: the pass
 * @steps: 0 is the cell where it began
 * @t: the cell
 *
 * In a section of the lists.
 *
 * Return: false: the group has no such cell on the node.
 */
bool sol_pass_target(const struct sol_pass *p, u32 steps,
		     struct sol_target *t);

/**
 * sol_pass_any_listed() - does any list of the group on the node have a frame?
 * @p: the pass
 */
bool sol_pass_any_listed(const struct sol_pass *p);

/**
 * sol_pass_note_refill() - count frames that were listed, in stats and the trace
 * @p: the pass
 * @cell: whose frames
 * @got: how many
 * @ns: how long that took
 */
void sol_pass_note_refill(const struct sol_pass *p, u32 cell, u32 got, u64 ns);

/**
 * sol_pass_make_room() - make the node have more free memory
 * @p: the pass
 * @at_once: reclaim here, which may take long; else wake kswapd
 */
void sol_pass_make_room(const struct sol_pass *p, bool at_once);

#endif /* SOLOIST_SUPPLY_PASS_H */
