/* SPDX-License-Identifier: GPL-2.0 */
/* Symbols: addresses of what the kernel does not export. */
#ifndef SOLOIST_SYMBOL_H
#define SOLOIST_SYMBOL_H

/**
 * sol_symbol_init() - find the kernel's own look-up; may sleep
 *
 * Return: 0, or an errno and words in the kernel log.
 */
int sol_symbol_init(void);

/**
 * sol_symbol_find() - the address of a function or variable; may sleep
 * @name: as the kernel has it
 *
 * Others ask table.h, which finds each name once.
 *
 * Return: the address; NULL: the kernel has no such name.
 */
void *sol_symbol_find(const char *name);

#endif /* SOLOIST_SYMBOL_H */
