/* SPDX-License-Identifier: GPL-2.0 */
/* One CPU under regulation; cores.c. */
#ifndef SOLOIST_GUARD_CORES_H
#define SOLOIST_GUARD_CORES_H

#include "state.h"

void sol_guard_core_init(struct sol_guard_core *core);
/* Make the CPU ready, or free what it had. sol_guard_mutex; may sleep. */
int sol_guard_core_up(struct sol_guard_core *core);
void sol_guard_core_down(struct sol_guard_core *core);
/* A period began, perhaps. On the CPU, interrupts off, the lock not held. */
void sol_guard_core_sync(struct sol_guard_core *core);
/* Have the CPU call sol_guard_core_sync(). From another CPU, under the lock. */
void sol_guard_core_call(struct sol_guard_core *core);
/* The CPU goes offline: on it, in a thread. */
void sol_guard_core_offline(struct sol_guard_core *core);

#endif /* SOLOIST_GUARD_CORES_H */
