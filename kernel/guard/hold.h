/* SPDX-License-Identifier: GPL-2.0 */
/* Holding tasks of a stopped CPU where they return to user space; hold.c. */
#ifndef SOLOIST_GUARD_HOLD_H
#define SOLOIST_GUARD_HOLD_H

#include <linux/types.h>

struct sol_guard_core;

/* Hold tasks from now on, or no more. sol_guard_mutex. 0, or an errno and words. */
int sol_guard_hold_begin(void);
void sol_guard_hold_end(void);

/* Hold the task that runs. On the CPU, interrupts off, ->holds was just set. */
void sol_guard_hold_current(void);

/* The C side of the hook. */
unsigned long sol_guard_going_out(void);

/* The thread that lets the tasks of a CPU go; @data: struct sol_guard_core. */
int sol_guard_release_fn(void *data);

#endif /* SOLOIST_GUARD_HOLD_H */
