/* SPDX-License-Identifier: GPL-2.0 */
/* Rungs of the ladder by which a page is found, as the trace names them. */
#ifndef SOLOIST_RUNG_H
#define SOLOIST_RUNG_H

enum sol_rung {
	SOL_AT_HAND,	/* this CPU's list */
	SOL_LISTED,	/* the lists of the group's cells, the next ones refilled */
	SOL_REFILLED,	/* the frames of its cells, looked at one by one */
	SOL_SEARCHED,	/* the zones' free lists */
	SOL_EVACUATED,	/* its frames that others used */
	SOL_EXHAUSTED,
};

#endif /* SOLOIST_RUNG_H */
