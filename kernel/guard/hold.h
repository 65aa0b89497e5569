/* SPDX-License-Identifier: GPL-2.0 */
/* Holding tasks of a stopped CPU where they go back to user space. */
#ifndef SOLOIST_GUARD_HOLD_H
#define SOLOIST_GUARD_HOLD_H

#include <linux/types.h>

struct sol_guard_core;

/* sol_guard_mutex: hold tasks from now on, or no more. An errno, and words. */
int sol_guard_hold_begin(void);
void sol_guard_hold_end(void);

/* On the CPU, interrupts off, its ->stop was just set: whoever runs is held. */
void sol_guard_hold_current(void);

/* What the hook's trampoline calls. */
unsigned long sol_guard_going_out(void);

/* The thread that lets the tasks of a CPU go; @data: struct sol_guard_core. */
int sol_guard_release_fn(void *data);

#endif /* SOLOIST_GUARD_HOLD_H */
