/* SPDX-License-Identifier: GPL-2.0 */
/* Address spaces of ended tasks that idle CPUs keep. All may sleep. */
#ifndef SOLOIST_LAZY_H
#define SOLOIST_LAZY_H

/* Ask idle CPUs to let go of them; waits @timeout jiffies at most. */
void sol_lazy_let_go(unsigned long timeout);

void sol_lazy_init(void);
void sol_lazy_exit(void);	/* nobody asks any more */

#endif /* SOLOIST_LAZY_H */
