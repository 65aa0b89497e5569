/* SPDX-License-Identifier: GPL-2.0 */
/* Rungs of the ladder by which a page is found, as the trace names them. */
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

#endif /* SOLOIST_RUNG_H */
