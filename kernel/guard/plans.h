/* SPDX-License-Identifier: GPL-2.0 */
/* Owners and reservations of all CPUs: to be changed, kept or put back. */
#ifndef SOLOIST_GUARD_PLANS_H
#define SOLOIST_GUARD_PLANS_H

#include "state.h"

/* The reservation of one CPU. */
struct sol_plan {
	struct sol_reservation want;
	bool regulated;
};

/**
 * struct sol_plans - of all CPUs, each array by CPU number
 * @core: reservations
 * @owner: the group whose reservation it is; NULL: the CPU's own
 * @pools: who shares bank sets with whom, see sol_regulator_pools()
 */
struct sol_plans {
	struct sol_plan *core;
	struct sol_group **owner;
	u64 *pools;
};

/* All of it is under sol_guard_mutex. */

/* Copy the present state into @p, except the pools. 0, or -ENOMEM and words. */
int sol_plans_take(struct sol_plans *p);
void sol_plans_free(struct sol_plans *p);

/*
 * Give @reg, which has no reservations and is nobody's yet, those of @p. 0, or an
 * errno and @why. The time that this takes rises with the square of the CPUs.
 */
int sol_plans_try(const struct sol_plans *p, struct sol_regulator *reg,
		  struct sol_err *why);

/* The regulator in use gets the reservations of @p, which fit. Under the lock. */
void sol_plans_put(const struct sol_plans *p, struct sol_regulator *reg);

/* Is @want enough if @set counts a clock? 0, or -EINVAL and words that begin with @what. */
int sol_guard_check_clock(const char *what, const struct sol_guard_set *set,
			  const struct sol_reservation *want);

/* A regulator for @set without reservations; an ERR_PTR, and words. */
struct sol_regulator *sol_guard_regulator_alloc(const struct sol_guard_set *set);
void sol_guard_regulator_free(struct sol_regulator *reg);

/**
 * sol_guard_pools() - find CPUs that share bank sets
 * @set: settings; without ->by_bank all CPUs share one pool
 * @owner: the group of each CPU, or NULL
 * @pools: becomes a bitmap of pools for each CPU
 *
 * Return: 0, or an errno and words.
 */
int sol_guard_pools(const struct sol_guard_set *set,
		    struct sol_group *const *owner, u64 *pools);

#endif /* SOLOIST_GUARD_PLANS_H */
