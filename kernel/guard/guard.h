/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Guard: bandwidth reservation. core/regulator/ has the rules; this drives them
 * from counters and a timer, and stops CPUs. docs/reference/guard.md says how it behaves.
 *
 *   state.h         what these share, and the locks
 *   guard.c         settings and reservations, which CPUs are regulated
 *   cores.c         one CPU: its counters, its overflows, standing still
 *   hold.c          holding tasks instead, where they leave the kernel
 *   fair.c          what standing still must not do to the scheduler
 *   period.c        the timer that begins periods, on one CPU for all
 *   counter.c       events
 */
#ifndef SOLOIST_GUARD_H
#define SOLOIST_GUARD_H

#include "state.h"

/* What a CPU's `stats` shows; see docs/reference/interface.md. */
struct sol_guard_core_stats {
	bool regulated;
	bool ready;
	bool stopped;
	u32 line;
	u32 reserved[SOL_TRAFFICS];	/* lines, in this period */
	struct sol_core_stats rules;	/* bytes */
	u64 stopped_ns;
	u64 overflows;
	u64 interrupts;
	u64 failed;
};

/* All may sleep. */

/* Change settings: @edit gets a copy, which is taken whole or not at all. */
int sol_guard_edit(int (*edit)(struct sol_guard_set *set, const void *arg),
		   const void *arg);
void sol_guard_settings(struct sol_guard_set *set);

/**
 * sol_guard_reserve() - reserve on CPUs; what @owner had elsewhere goes
 * @owner: a group, or NULL: the CPU's own, then @cpus is one CPU
 * @cpus: each gets @want; ignored if @want is NULL
 * @want: NULL: take the reservation away
 */
int sol_guard_reserve(struct sol_group *owner, const struct cpumask *cpus,
		      const struct sol_reservation *want);

/* @owner is about to go: its reservations go too, whatever happens. */
void sol_guard_disown(struct sol_group *owner);

/* A group's CPUs and what each has; false: nothing. */
bool sol_guard_reserved(const struct sol_group *owner, struct cpumask *cpus,
			struct sol_reservation *want);
/* The same of one CPU, whoever owns it. */
bool sol_guard_reserved_on(int cpu, struct sol_group **owner,
			   struct sol_reservation *want);
/* Returns whether it is regulated; @stats is filled in any case. */
bool sol_guard_core_stats(int cpu, struct sol_guard_core_stats *stats);
/* Does regulation by bank depend on @group's colours? Then words and -EBUSY. */
int sol_guard_may_recolor(const struct sol_group *group);

int sol_guard_init(void);
void sol_guard_exit(void);

#endif /* SOLOIST_GUARD_H */
