/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduler's fair server and CPUs that stand still; fair.c. */
#ifndef SOLOIST_GUARD_FAIR_H
#define SOLOIST_GUARD_FAIR_H

#include <linux/types.h>

struct sched_dl_entity;

/**
 * struct sol_guard_fair - a CPU's fair server; times in ns, all 0 at first
 * @server: NULL: not seen yet, or this kernel has none
 * @goes_off: when it was to go off as it was sent back, by the run queue's clock
 * @ran: for how long fair tasks have run since @waits_since
 * @waits_since: how long the CPU had run when they began to wait
 * @open: how long it had run at the last look
 * @stopped_ns: how long it had stood still at the last look
 * @turn: when the server went off and fair tasks could go first, by that clock; 0:
 *	they can't
 * @turn_ends: when that ends at the latest, by the monotonic clock
 */
struct sol_guard_fair {
	struct sched_dl_entity *server;
	u64 goes_off;
	u64 ran;
	u64 waits_since;
	u64 open;
	u64 stopped_ns;
	u64 turn;
	u64 turn_ends;
};

/* Find the scheduler's functions. 0, or -ENOENT: this kernel lacks one. */
int sol_guard_fair_init(void);

/* The current task is about to stand still. On the CPU, interrupts off. */
void sol_guard_fair_stops(struct sol_guard_fair *fair);

/* The stop has ended: in the thread that stood still. @stopped_ns: of all stops. */
void sol_guard_fair_goes_on(struct sol_guard_fair *fair, u64 stopped_ns);

#endif /* SOLOIST_GUARD_FAIR_H */
