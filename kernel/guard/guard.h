/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The guard: bandwidth regulation of CPUs. core/regulator/ is the algorithm; this
 * drives it from counters and a timer, and stops CPUs. docs/reference/guard.md says
 * how it behaves.
 *
 *   state.h         what the files of the room share, and the locks
 *   guard.c         which CPUs are regulated, and what they counted
 *   settings.c      settings, and the regulator that follows them
 *   reserve.c       reservations of groups and of CPUs
 *   plans.c         what all CPUs have reserved, to be changed or put back
 *   cores.c         one CPU: its counters, its overflows, standing still
 *   hold.c          holding tasks instead, where they leave the kernel
 *   fair.c          keeping the scheduler's fair server out of stops
 *   period.c        the timer that begins periods, on one CPU for all
 *   counter.c       events
 */
#ifndef SOLOIST_GUARD_H
#define SOLOIST_GUARD_H

#include "state.h"

/* Statistics of a CPU, as its file `stats` shows them; docs/reference/interface.md. */
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

/**
 * sol_guard_edit() - change settings
 * @edit: changes a copy of them; 0, or an errno with words
 * @arg: for @edit
 *
 * Return: 0; what @edit says; -EINVAL, -EBUSY, -EOPNOTSUPP, -ENXIO, -ENOMEM: nothing has
 * changed, and last_cmd_status says why. 1: all is in force, but a CPU could not be made
 * ready, which last_cmd_status names; it is tried again. If a later try is of no use, its
 * errno, and the sentence says that settings are in force.
 */
int sol_guard_edit(int (*edit)(struct sol_guard_set *set, const void *arg),
		   const void *arg);

/* The settings, into @set. */
void sol_guard_settings(struct sol_guard_set *set);

/**
 * sol_guard_reserve() - reserve bandwidth on CPUs
 * @owner: a group, whose reservations on other CPUs go; NULL: a CPU itself
 * @cpus: each of them gets @want; one CPU if @owner is NULL
 * @want: NULL: take the reservation away
 *
 * Return: 0, or an errno and words: nothing has changed.
 */
int sol_guard_reserve(struct sol_group *owner, const struct cpumask *cpus,
		      const struct sol_reservation *want);

/* @owner is about to go: take its reservations away. This does not fail. */
void sol_guard_disown(struct sol_group *owner);

/* The CPUs of group @owner, and what each has reserved. Return: is there any? */
bool sol_guard_reserved(const struct sol_group *owner, struct cpumask *cpus,
			struct sol_reservation *want);
/*
 * What @cpu has reserved, and the name of the group for which, into @owner[@size]; "": for
 * itself. Return: has it any?
 */
bool sol_guard_reserved_on(int cpu, char *owner, size_t size,
			   struct sol_reservation *want);
/* Fill @stats. Return: is @cpu regulated? */
bool sol_guard_core_stats(int cpu, struct sol_guard_core_stats *stats);
/**
 * sol_guard_recolor_begin() - before a group's colours change, or whether they may grow
 * @group: whose; it gets no bandwidth by bank until sol_guard_recolor_end()
 *
 * Return: 0, or -EBUSY and words: bandwidth by bank depends on its colours.
 */
int sol_guard_recolor_begin(struct sol_group *group);
void sol_guard_recolor_end(struct sol_group *group);

/* ---- Between the files of the room; sol_guard_mutex ---- */

/*
 * Give counters and a thread to CPUs with a reservation, and to no others. Where that
 * fails but may succeed later, work tries again.
 */
void sol_guard_reconcile(void);
/* Take them from all CPUs. */
void sol_guard_all_down(void);
/* Could @cpu not be made ready? 0, or an errno and a sentence that begins with @what. */
int sol_guard_trouble(const char *what, int cpu);
/* May a try to make a CPU ready succeed later that failed with @err? */
bool sol_guard_may_pass(int err);

/* Use regulator @reg (NULL: nothing is reserved) and settings @set from now on. */
void sol_guard_swap(struct sol_regulator *reg, const struct sol_guard_set *set);

/* Can this kernel stop a CPU as @set says? 0, or -EOPNOTSUPP and words. */
int sol_guard_check_stop(const struct sol_guard_set *set);

/* Add counts of lines, @line bytes each, to @sum, which counts bytes. */
void sol_guard_stats_add(struct sol_core_stats *sum,
			 const struct sol_core_stats *lines, u32 line);

/* ---- Load and unload ---- */

int sol_guard_init(void);
void sol_guard_exit(void);

#endif /* SOLOIST_GUARD_H */
