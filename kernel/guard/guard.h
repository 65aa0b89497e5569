/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Guard: bandwidth reservation. core/regulator/ has the rules; this drives them
 * from counters and a timer, and stops CPUs. docs/reference/guard.md says how it behaves.
 *
 *   state.h         what these share, and the locks
 *   guard.c         which CPUs are regulated, what they counted
 *   settings.c      settings, and the regulator that goes by them
 *   reserve.c       reservations of groups and CPUs
 *   plans.c         what all CPUs have reserved, to be changed or put back
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

/* ---- For the guard itself; sol_guard_mutex ---- */

/* CPUs with a reservation have what they need, and no others. */
void sol_guard_reconcile(void);
void sol_guard_all_down(void);

/* Go by regulator @reg (NULL: nothing is reserved) and by @set from now on. */
void sol_guard_swap(struct sol_regulator *reg, const struct sol_guard_set *set);

/* Can this kernel stop a CPU as @set says? 0, or -EOPNOTSUPP and words. */
int sol_guard_check_stop(const struct sol_guard_set *set);

/* Add what was counted in lines of @line bytes to @sum, which has bytes. */
void sol_guard_stats_add(struct sol_core_stats *sum,
			 const struct sol_core_stats *lines, u32 line);

/* ---- Load and unload ---- */

int sol_guard_init(void);
void sol_guard_exit(void);

#endif /* SOLOIST_GUARD_H */
