/* SPDX-License-Identifier: GPL-2.0 */
/* What the trace has names for: rungs of the ladder, and what follows the last. */
#ifndef SOLOIST_RUNG_H
#define SOLOIST_RUNG_H

enum sol_rung {
	SOL_AT_HAND,	/* this CPU's magazine */
	SOL_LISTED,	/* the group's lists, those whose turn it is refilled */
	SOL_REFILLED,	/* the frames of its cells, one by one */
	SOL_SEARCHED,	/* the free lists */
	SOL_EVACUATED,	/* what others had in its frames */
	SOL_EXHAUSTED,
};

enum sol_exhaust {
	SOL_FAIL,	/* CAMC: no page; the task gets a signal */
	SOL_GROW,	/* CAMC: take another free colour */
	SOL_SPILL,	/* any page of the node, counted */
	SOL_N_EXHAUST
};

#endif /* SOLOIST_RUNG_H */
