/* SPDX-License-Identifier: GPL-2.0 */
/* Rungs of the ladder by which a page is found, as the trace names them. */
#ifndef SOLOIST_RUNG_H
#define SOLOIST_RUNG_H

enum sol_rung {
	SOL_AT_HAND,	/* this CPU's list */
	SOL_LISTED,	/* the lists of the group's cells */
	SOL_SUPPLIED,	/* the same, after a wait for supply */
	SOL_EXHAUSTED,
};

#endif /* SOLOIST_RUNG_H */
