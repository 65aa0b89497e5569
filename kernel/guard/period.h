/* SPDX-License-Identifier: GPL-2.0 */
/* The timer that begins periods; period.c. */
#ifndef SOLOIST_GUARD_PERIOD_H
#define SOLOIST_GUARD_PERIOD_H

void sol_guard_period_init(void);
/* Run the timer on the first CPU that is ready; none: stop it. May sleep. */
void sol_guard_period_move(void);

#endif /* SOLOIST_GUARD_PERIOD_H */
