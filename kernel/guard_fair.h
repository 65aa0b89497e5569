/* SPDX-License-Identifier: GPL-2.0 */
/* Standing still and the scheduler's fair server; see guard_fair.c. */
#ifndef SOLOIST_GUARD_FAIR_H
#define SOLOIST_GUARD_FAIR_H

#include <linux/types.h>

struct sched_dl_entity;

/**
 * struct sol_guard_fair - what is known of a CPU's fair server; all 0 at first
 * @server: NULL: not yet seen, or this kernel has none
 * @sent_back: when it was last sent back, as the run queue's clock has it
 * @waits_since: ns the CPU had run by then, at the first of several such times
 * @due: the period that is its turn, by the same clock
 */
struct sol_guard_fair {
	struct sched_dl_entity *server;
	u64 sent_back;
	u64 waits_since;
	u64 due;
};

int sol_guard_fair_init(void);
/* The current task is about to stand still. On the CPU, interrupts off. */
void sol_guard_fair_stops(struct sol_guard_fair *fair);
/* In the thread that stood still. @stopped_ns: for how long, in all stops. */
void sol_guard_fair_goes_on(struct sol_guard_fair *fair, u64 stopped_ns);

#endif /* SOLOIST_GUARD_FAIR_H */
