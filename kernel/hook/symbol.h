/* SPDX-License-Identifier: GPL-2.0 */
/* Symbols: addresses of what the kernel does not export. */
#ifndef SOLOIST_SYMBOL_H
#define SOLOIST_SYMBOL_H

/* Find the kernel's own look-up. 0, or an errno and words in the kernel log. */
int sol_symbol_init(void);

/* A function or variable; NULL: none. May sleep. Others ask table.h. */
void *sol_symbol_find(const char *name);

#endif /* SOLOIST_SYMBOL_H */
