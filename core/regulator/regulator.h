/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Regulator: MemGuard's bandwidth regulation as a state machine.
 *
 * It has no clock and no counter. Its driver tells it that a period begins, and how
 * much a core has used, and does what it answers: let the core run up to a limit, stop
 * it, let a whole domain go, begin a new period at once. The driver of the kernel has
 * overflowing perf events and a timer, that of the simulator modelled misses.
 *
 *   period:  sol_regulator_begin(), then sol_regulator_core() for each core
 *   usage:   sol_regulator_used(), on overflow or as often as one likes
 *
 * Rules (figure 4 of the paper; Q_i reservation, u_i used, G global budget):
 *   - A period begins: a core's budget is min(prediction, Q_i), what is left of
 *     Q_i goes to G. G of the last period is gone.
 *   - A core has used its budget: it reclaims min(Q_i - u_i, G) below its
 *     reservation and min(Q_min, G) above. With G empty it runs on up to Q_i,
 *     and beyond is stopped until the next period.
 *   - A core that ran on with G empty and did not come to Q_i by the end of the
 *     period suffered a reclaim under-run error; the predictor is then told
 *     Q_i + (Q_i - u_i) instead of u_i.
 *   - Best effort: when all have used their budgets, spare sharing lets all run
 *     until the period ends, proportional sharing begins a new one at once.
 *
 * When have "all used their budgets"? The paper's text says all cores, its
 * figure 4 says sum u_i = r_min. These are the same only if reservations fill
 * r_min, and with a core that is idle neither ever comes true. Here: every
 * core of the domain is stopped, or has nothing left because it gave its whole
 * budget to G and has not asked for any since. A core that runs on below its
 * reservation holds the phase back, as does one that does not take part in
 * reclaiming and has budget left.
 *
 * Other differences from the paper:
 *   - Running on (lines 29-30) ends at Q_i; there, the counter was not
 *     programmed again and the core ran unlimited.
 *   - Usage beyond the budget when it is told (a late sample, a skid) is paid
 *     out of G first, so that budgets are conserved whatever the source.
 *   - Reads and writes have budgets, predictions and G's of their own; a core
 *     is stopped for either.
 *   - Budgets are per (core, pool). A pool is a group of bank sets that the
 *     same cores have colours in; G is kept per pool and a core reclaims only
 *     what all its pools have. Cores that share no pool, not even through
 *     others, are in different domains: neither is stopped for the other's
 *     sake, and each pool's reservations alone must fit r_min (which is the
 *     bandwidth of one bank). Without colours all cores are in pool 0, and
 *     that is MemGuard.
 *
 * Units: rates in bytes per second; budgets and usage in lines (one cache line
 * moved, one event of the counter) per period; periods in microseconds.
 *
 * Locking: the caller's, one for a regulator; every function is short enough
 * for a raw spinlock in an interrupt (none loops over more than the cores).
 */
#ifndef SOLOIST_REGULATOR_H
#define SOLOIST_REGULATOR_H

#include "../colors/palette.h"

#define SOL_POOLS		64
#define SOL_NO_LIMIT		(~(u32)0)
#define SOL_MAX_WEIGHT		1000000
#define SOL_MAX_RATE		10000000000000ull	/* 10 TB/s: products fit 64 bits */
#define SOL_EWMA_ONE		256	/* the newest period alone counts */

/**
 * enum sol_traffic - kinds of traffic
 * @SOL_READS: lines read, or all lines where the counter counts both
 * @SOL_WRITES: lines written
 * @SOL_TRAFFICS: how many kinds there are
 */
enum sol_traffic { SOL_READS, SOL_WRITES, SOL_TRAFFICS };

/**
 * enum sol_sharing - what happens when all cores have used their budgets
 * @SOL_SHARE_NONE: they are stopped until the period ends
 * @SOL_SHARE_SPARE: they run without limit until it ends (paper 5.2)
 * @SOL_SHARE_PROPORTIONAL: a new period begins at once (paper 5.3)
 */
enum sol_sharing {
	SOL_SHARE_NONE,
	SOL_SHARE_SPARE,
	SOL_SHARE_PROPORTIONAL,
};

/**
 * struct sol_regulation - settings of a regulator
 * @period: length of a period, microseconds, 10 to 1000000
 * @line: bytes that one counted event moves, a power of two from 16 to 4096
 * @r_min: guaranteed bandwidth by kind of traffic, bytes per second; the sum of
 *	reservations in a pool never exceeds it. 0 for SOL_WRITES: writes are
 *	not regulated. Not 0 for SOL_READS
 * @peak: peak bandwidth, bytes per second, at least r_min
 * @q_min: what a core above its reservation reclaims at a time, lines;
 *	0: 1 % of @peak, as the paper
 * @ewma: weight of the newest period in the prediction, 1 to 256, in 1/256. The
 *	paper does not say; its example (figure 6) needs more than 171
 * @sharing: enum sol_sharing
 */
struct sol_regulation {
	u32 period;
	u32 line;
	u64 r_min[SOL_TRAFFICS];
	u64 peak;
	u32 q_min;
	u16 ewma;
	u8 sharing;
};

/**
 * struct sol_reservation - what a core reserves
 * @rate: bytes per second by kind; used if @weight is 0. A kind that is not
 *	regulated is ignored
 * @weight: 1 to 1000000: share of what absolute reservations leave of r_min,
 *	among the weighted cores of the domain that are active; each weighted
 *	core has one line besides, active or not. 0: absolute. In per-task mode
 *	the priority of the task on the core counts instead, see
 *	sol_regulator_weight()
 * @reclaim: the core gives what it is predicted not to use and takes when short
 *	of it. Off for hard real time: it has Q_i, always, and no more
 */
struct sol_reservation {
	u64 rate[SOL_TRAFFICS];
	u32 weight;
	bool reclaim;
};

/**
 * struct sol_core_stats - counts since the core was first regulated
 * @used: lines by kind
 * @donated: lines given to G, by kind
 * @reclaimed: lines taken out of G, by kind
 * @beyond: lines used above the budget, by kind: best effort, or run on
 * @periods: periods begun
 * @stops: times the core was stopped
 * @underruns: periods with a reclaim under-run error
 */
struct sol_core_stats {
	u64 used[SOL_TRAFFICS];
	u64 donated[SOL_TRAFFICS];
	u64 reclaimed[SOL_TRAFFICS];
	u64 beyond[SOL_TRAFFICS];
	u64 periods;
	u64 stops;
	u64 underruns;
};

/**
 * struct sol_meter - one kind of traffic of one core, in the period that runs
 * @reserved: Q_i, lines
 * @budget: lines given at the start and reclaimed since
 * @limit: lines used at which the driver must tell: the budget, or Q_i
 * @used: u_i as last told, lines
 * @predicted: usage predicted for the next period, in 1/256 line
 */
struct sol_meter {
	u32 reserved;
	u32 budget;
	u32 limit;
	u32 used;
	u64 predicted;
};

/**
 * struct sol_core - one core; all zero: not regulated, never stopped
 * @want: reservation from the next period on
 * @now: reservation in this period
 * @meter: by kind of traffic
 * @stats: counts
 * @task_weight: of the task that ran, per-task mode; 0: not told, @want has it
 * @pools: bitmap of its pools; none without a reservation
 * @next_pools: bitmap from the next period on, never 0
 * @domain: the lowest pool of its domain, 0 to SOL_POOLS - 1
 * @regulated: has a reservation
 * @active: has something to run; counts for weights
 * @online: takes part in periods
 * @taking_part: was regulated and online when the period began
 * @weighs: takes part, and was active when the period began: its weight is in the sum
 * @begun: sol_regulator_core() was called for it in this period
 * @finish: took part in a period that is not accounted for yet
 * @missed: did not begin a period since that one
 * @known: the predictor has seen a period
 * @stopped: must stand still
 * @done: has no budget left
 * @ran_on: by kind, ran on below Q_i with G empty
 */
struct sol_core {
	struct sol_reservation want;
	struct sol_reservation now;
	struct sol_meter meter[SOL_TRAFFICS];
	struct sol_core_stats stats;
	u64 pools;
	u64 next_pools;
	u32 task_weight;
	u8 domain;
	bool regulated;
	bool active;
	bool online;
	bool taking_part;
	bool weighs;
	bool begun;
	bool finish;
	bool missed;
	bool known;
	bool stopped;
	bool done;
	bool ran_on[SOL_TRAFFICS];
};

/**
 * struct sol_domain - cores that depend on each other
 * @not_done: cores that have budget left or have yet to begin
 * @stopped: cores that are stopped
 * @weights: sum over active cores with weights
 * @fixed: lines that are not shared by weight, by kind: absolute reservations
 *	and one line for each weighted core, in the pool that has most
 * @best_effort: spare sharing has begun
 */
struct sol_domain {
	u32 not_done;
	u32 stopped;
	u64 weights;
	u32 fixed[SOL_TRAFFICS];
	bool best_effort;
};

/**
 * struct sol_regulator - a regulator
 * @set: settings
 * @r_min: lines per period by kind; 0: the kind is not regulated
 * @q_min: lines
 * @n_cores: elements of @core, 1 to 4096
 * @core: the caller's memory
 * @domain: by the lowest pool of each domain
 * @global: G of each pool by kind, lines
 * @pools: bitmap: somebody is in the pool
 * @pools_changed: the next period begins with other pools
 */
struct sol_regulator {
	struct sol_regulation set;
	u32 r_min[SOL_TRAFFICS];
	u32 q_min;
	u32 n_cores;
	struct sol_core *core;
	struct sol_domain domain[SOL_POOLS];
	u32 global[SOL_POOLS][SOL_TRAFFICS];
	u64 pools;
	bool pools_changed;
};

/**
 * enum sol_order - what the driver is told to do
 * @SOL_RUN: let the core run; tell when usage comes to a limit
 * @SOL_STOP: stop the core until it begins another period
 * @SOL_FREE: let all cores of the domain run, without limits
 * @SOL_RESTART: call sol_regulator_restart(), then all its cores begin
 */
enum sol_order {
	SOL_RUN,
	SOL_STOP,
	SOL_FREE,
	SOL_RESTART,
};

/**
 * struct sol_answer - what the driver must do now
 * @order: enum sol_order
 * @domain: which domain, for SOL_FREE and SOL_RESTART
 * @limit: lines used in this period by kind at which to tell again;
 *	SOL_NO_LIMIT: no need to. Never below what has been used, but it may be
 *	equal (a budget of 0): tell at the next event then
 */
struct sol_answer {
	enum sol_order order;
	u32 domain;
	u32 limit[SOL_TRAFFICS];
};

/**
 * sol_regulation_lines() - a rate as lines per period
 * @set: settings
 * @rate: bytes per second
 * Return: lines per period, rounded down, at most 2^31.
 */
u32 sol_regulation_lines(const struct sol_regulation *set, u64 rate);

/**
 * sol_fixed_lines() - what a core takes of r_min, whatever others have
 * @reg: regulator
 * @want: the core's reservation
 * @kind: enum sol_traffic
 * Return: lines per period; 1 for a core with a weight.
 */
static inline u32 sol_fixed_lines(const struct sol_regulator *reg,
				  const struct sol_reservation *want, u32 kind)
{
	return want->weight ? 1 :
	       sol_regulation_lines(&reg->set, want->rate[kind]);
}

/**
 * sol_regulation_check() - can a regulator have these settings?
 * @set: settings; r_min may be 0 here: nothing is regulated yet
 * @err: what is wrong, filled on failure
 * Return: 0 or -EINVAL.
 */
int sol_regulation_check(const struct sol_regulation *set, struct sol_err *err);

/**
 * sol_regulator_init() - a regulator without reservations
 * @reg: filled; nobody is regulated, all cores are online and in pool 0
 * @set: settings
 * @core: memory for @n_cores cores, all of it overwritten
 * @n_cores: 1 to 4096
 * @err: what is wrong, filled on failure
 * Return: 0, or -EINVAL (then @reg is unchanged).
 */
int sol_regulator_init(struct sol_regulator *reg,
		       const struct sol_regulation *set, struct sol_core *core,
		       u32 n_cores, struct sol_err *err);

/* ---- Reservations; they take effect when the next period begins ---- */

/**
 * sol_regulator_reserve() - set or take away a reservation
 * @reg: regulator
 * @core: 0 to n_cores - 1
 * @want: the reservation; NULL takes it away
 * @err: what is wrong, with the sum of the reservations, filled on failure
 *
 * Takes effect when the next period begins; a core whose reservation is taken
 * away is let go at once by sol_regulator_stopped().
 *
 * Return: 0; -EINVAL for a wrong value or core; -ENOSPC if a pool's
 * reservations would exceed r_min. Nothing has changed then.
 */
int sol_regulator_reserve(struct sol_regulator *reg, u32 core,
			  const struct sol_reservation *want,
			  struct sol_err *err);

/**
 * sol_regulator_weight() - the weight of the task that runs on a core
 * @reg: regulator
 * @core: 0 to n_cores - 1; ignored if its reservation has no weight
 * @weight: up to SOL_MAX_WEIGHT; 0 counts as 1
 *
 * Per-task mode. Takes effect when the next period begins, as in the paper, instead of
 * the reservation's own weight, which stays.
 */
void sol_regulator_weight(struct sol_regulator *reg, u32 core, u32 weight);

/**
 * sol_regulator_active() - whether a core has something to run
 * @reg: regulator
 * @core: 0 to n_cores - 1
 * @active: true at first
 *
 * Takes effect when the next period begins.
 */
void sol_regulator_active(struct sol_regulator *reg, u32 core, bool active);

/**
 * sol_regulator_online() - a core comes or goes
 * @reg: regulator
 * @core: 0 to n_cores - 1
 * @online: true at first; an offline core takes no part from now on, but keeps
 *	its reservation
 * Return: what the driver must do now.
 */
struct sol_answer sol_regulator_online(struct sol_regulator *reg, u32 core,
				       bool online);

/**
 * sol_regulator_pools() - which cores share which banks
 * @reg: regulator
 * @pools: bitmap of pools for each core, see sol_pools(), each with one at
 *	least. All 1: all share pool 0, as at first
 * @err: what is wrong, filled on failure
 *
 * Takes effect when the next period begins for all.
 *
 * Return: 0; -EINVAL for a core without a pool; -ENOSPC if a pool's
 * reservations would exceed r_min. Nothing has changed then.
 */
int sol_regulator_pools(struct sol_regulator *reg, const u64 *pools,
			struct sol_err *err);

/**
 * sol_regulator_put() - set a reservation and pools that were checked elsewhere
 * @reg: regulator
 * @core: 0 to n_cores - 1
 * @want: the reservation; NULL takes it away
 * @pools: bitmap of the core's pools
 *
 * For a plan of all cores that fits a regulator with the same settings: this neither
 * checks nor looks at other cores, so that a caller who puts them all holds its lock
 * for a few stores each. A core whose reservation stays the same goes on as it was.
 * Takes effect when the next period begins for all.
 */
void sol_regulator_put(struct sol_regulator *reg, u32 core,
		       const struct sol_reservation *want, u64 pools);

/**
 * sol_pools() - group bank sets by who has colours in them
 * @n_bank_sets: of the map
 * @colors: of each core; NULL or without by_bank: any bank set
 * @n_cores: elements of @colors and @pools
 * @pools: filled, one bitmap for each core
 *
 * Bank sets that the same cores use make one pool. Past 64 of them the rest
 * count as one, which only makes more cores depend on each other.
 */
void sol_pools(u32 n_bank_sets, const struct sol_colors *const *colors,
	       u32 n_cores, u64 *pools);

/* ---- Running ---- */

/**
 * sol_regulator_begin() - a period begins for all cores (figure 4, lines 1-5)
 * @reg: regulator
 *
 * Call sol_regulator_core() for each core after this. Until then a core runs
 * without limit, or goes on standing still.
 */
void sol_regulator_begin(struct sol_regulator *reg);

/**
 * sol_regulator_restart() - a period begins for one domain
 * @reg: regulator
 * @domain: that of the answer that said SOL_RESTART
 *
 * Reservations and weights stay as they were; these change when a period begins
 * for all.
 */
void sol_regulator_restart(struct sol_regulator *reg, u32 domain);

/**
 * sol_regulator_core() - the period begins for a core (lines 6-17)
 * @reg: regulator
 * @core: 0 to n_cores - 1
 * @used: lines used in the one that ended, by kind
 * Return: SOL_RUN with the limits of the new period; SOL_FREE or SOL_RESTART
 * if all others are stopped already and this core has given all it had.
 */
struct sol_answer sol_regulator_core(struct sol_regulator *reg, u32 core,
				     const u32 *used);

/**
 * sol_regulator_used() - how much a core has used (lines 18-34)
 * @reg: regulator
 * @core: 0 to n_cores - 1
 * @used: lines in this period by kind, at an overflow or at any other time
 * Return: what the driver must do now.
 */
struct sol_answer sol_regulator_used(struct sol_regulator *reg, u32 core,
				     const u32 *used);

/**
 * sol_regulator_stopped() - whether a core must stand still
 * @reg: regulator
 * @core: 0 to n_cores - 1
 *
 * For a driver that lost an answer.
 *
 * Return: whether it must.
 */
static inline bool sol_regulator_stopped(const struct sol_regulator *reg,
					 u32 core)
{
	const struct sol_core *c = &reg->core[core];

	return c->stopped && c->regulated &&
	       !reg->domain[c->domain].best_effort;
}

#endif /* SOLOIST_REGULATOR_H */
