/* SPDX-License-Identifier: GPL-2.0 */
/* The last look of a pass, when no list has a frame; last_look.c says how. */
#ifndef SOLOIST_SUPPLY_LAST_LOOK_H
#define SOLOIST_SUPPLY_LAST_LOOK_H

#include "pass.h"

/**
 * sol_last_look() - look for a frame wherever the group may have one
 * @p: a pass that found none; no list of its group has one
 * @outcome: what was found, or what is short
 *
 * Takes long, and sleeps.
 *
 * Return: false: it gave way to faults of other groups. The group's next pass goes on.
 */
bool sol_last_look(struct sol_pass *p, enum sol_outcome *outcome);

/**
 * sol_last_look_retry() - search the cells' free frames again after a drain
 * @p: a pass that begins
 *
 * Does nothing unless a look of the group's had the kernel's lists of CPUs emptied since.
 */
void sol_last_look_retry(const struct sol_pass *p);

/** sol_last_look_flush() - wait for a drain under way; may sleep */
void sol_last_look_flush(void);

#endif /* SOLOIST_SUPPLY_LAST_LOOK_H */
