/* SPDX-License-Identifier: GPL-2.0 */
/* Supply: a thread of each node lists frames ahead of need; supply.c says how. */
#ifndef SOLOIST_SUPPLY_H
#define SOLOIST_SUPPLY_H

/**
 * sol_supply_init() - start the threads; may sleep
 *
 * Return: 0 or an errno.
 */
int sol_supply_init(void);

/**
 * sol_supply_exit() - stop the threads; may sleep
 *
 * The hooks are off, so that nobody waits for a frame.
 */
void sol_supply_exit(void);

#endif /* SOLOIST_SUPPLY_H */
