/* SPDX-License-Identifier: GPL-2.0 */
/* Supply: a thread of each node lists frames ahead of need; supply.c says how. */
#ifndef SOLOIST_SUPPLY_H
#define SOLOIST_SUPPLY_H

int sol_supply_init(void);	/* 0 or an errno */

/* The hooks are off, so that nobody waits. */
void sol_supply_exit(void);

#endif /* SOLOIST_SUPPLY_H */
