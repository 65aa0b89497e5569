// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Regulator: what happens in a period. Rules, differences from the paper and
 * units are in regulator.h; admission.c says who may reserve how much.
 *
 * Invariant, in every pool and kind of traffic, for the cores that have begun: the sum
 * of their budgets and G is the sum of their reservations.
 *
 * Locking: the caller's.
 */
#include "regulator.h"

u32 sol_regulation_lines(const struct sol_regulation *set, u64 rate)
{
	u64 lines;

	if (rate > SOL_MAX_RATE)
		rate = SOL_MAX_RATE;
	lines = sol_div(sol_div(rate * set->period, 1000000), set->line);
	return lines > 1u << 31 ? 1u << 31 : lines;
}

static bool counts(const struct sol_regulator *reg, u32 kind)
{
	return reg->r_min[kind];
}

/* ---- The global budget ---- */

/* Lines that all pools of the core have. */
static u32 global_left(const struct sol_regulator *reg,
		       const struct sol_core *c, u32 kind)
{
	u32 left = SOL_NO_LIMIT;
	u64 pools;

	for (pools = c->pools; pools; pools &= pools - 1) {
		u32 g = reg->global[__builtin_ctzll(pools)][kind];

		if (g < left)
			left = g;
	}
	return left;
}

static void donate(struct sol_regulator *reg, struct sol_core *c, u32 kind,
		   u32 lines)
{
	u64 pools;

	for (pools = c->pools; pools; pools &= pools - 1)
		reg->global[__builtin_ctzll(pools)][kind] += lines;
	c->stats.donated[kind] += lines;
}

/* Move up to @lines from G to the core's budget; returns how many. */
static u32 take(struct sol_regulator *reg, struct sol_core *c, u32 kind,
		u32 lines)
{
	u32 left = global_left(reg, c, kind);
	u64 pools;

	if (lines > left)
		lines = left;
	for (pools = c->pools; pools; pools &= pools - 1)
		reg->global[__builtin_ctzll(pools)][kind] -= lines;
	c->meter[kind].budget += lines;
	c->stats.reclaimed[kind] += lines;
	return lines;
}

/* ---- A period begins ---- */

static void reset_domain(struct sol_regulator *reg, u32 domain)
{
	memset(&reg->domain[domain], 0, sizeof(reg->domain[domain]));
}

static void await_core(struct sol_regulator *reg, struct sol_core *c,
		       bool takes_part)
{
	struct sol_domain *d = &reg->domain[c->domain];

	c->missed |= c->finish;
	c->finish |= c->taking_part && c->begun;
	c->taking_part = takes_part;
	c->weighs = takes_part && c->active;
	c->begun = false;
	c->done = false;
	if (!takes_part)
		return;
	d->not_done++;
	if (c->weighs)
		d->weights += c->now.weight;
}

/* Lines that weights do not share: the sum in each domain's fullest pool. */
static void sum_fixed(struct sol_regulator *reg, u32 kind)
{
	u32 sum[SOL_POOLS], i;
	u64 left;

	for (left = reg->pools; left; left &= left - 1)
		sum[__builtin_ctzll(left)] = 0;

	for (i = 0; i < reg->n_cores; i++) {
		const struct sol_core *c = &reg->core[i];
		u32 *most = &reg->domain[c->domain].fixed[kind];
		u64 pools = c->taking_part ? c->pools : 0;

		for (; pools; pools &= pools - 1) {
			u32 pool = __builtin_ctzll(pools);

			sum[pool] += sol_fixed_lines(reg, &c->now, kind);
			if (sum[pool] > *most)
				*most = sum[pool];
		}
	}
}

static void clear_pools(struct sol_regulator *reg, u64 pools)
{
	u32 kind;

	for (; pools; pools &= pools - 1)
		for (kind = 0; kind < SOL_TRAFFICS; kind++)
			reg->global[__builtin_ctzll(pools)][kind] = 0;
}

/*
 * Join the pools of each regulated core: domain_of[] is the lowest pool joined.
 * Others join nothing: nobody waits for them.
 */
static void join_pools(const struct sol_regulator *reg, u8 *domain_of)
{
	u64 joined[SOL_POOLS];
	u32 i, pool;

	for (pool = 0; pool < SOL_POOLS; pool++)
		joined[pool] = 1ull << pool;
	for (i = 0; i < reg->n_cores; i++) {
		u64 all = 0, rest;

		if (!reg->core[i].regulated)
			continue;
		for (rest = reg->core[i].next_pools; rest; rest &= rest - 1)
			all |= joined[__builtin_ctzll(rest)];
		for (rest = all; rest; rest &= rest - 1)
			joined[__builtin_ctzll(rest)] = all;
	}
	for (pool = 0; pool < SOL_POOLS; pool++)
		domain_of[pool] = __builtin_ctzll(joined[pool]);
}

static void change_pools(struct sol_regulator *reg)
{
	u8 domain_of[SOL_POOLS];
	u32 i;

	join_pools(reg, domain_of);
	clear_pools(reg, reg->pools);
	reg->pools = 0;
	for (i = 0; i < reg->n_cores; i++) {
		struct sol_core *c = &reg->core[i];

		c->pools = c->regulated ? c->next_pools : 0;
		c->domain = domain_of[__builtin_ctzll(c->next_pools)];
		reg->pools |= c->pools;
	}
	reg->pools_changed = false;
}

void sol_regulator_begin(struct sol_regulator *reg)
{
	u64 left;
	u32 i;

	if (reg->pools_changed)
		change_pools(reg);
	for (left = reg->pools; left; left &= left - 1)
		reset_domain(reg, __builtin_ctzll(left));
	clear_pools(reg, reg->pools);
	for (i = 0; i < reg->n_cores; i++) {
		struct sol_core *c = &reg->core[i];

		c->now = c->want;
		if (c->now.weight && c->task_weight)
			c->now.weight = c->task_weight;
		await_core(reg, c, c->regulated && c->online);
	}
	for (i = 0; i < SOL_TRAFFICS; i++)
		if (counts(reg, i))
			sum_fixed(reg, i);
}

void sol_regulator_restart(struct sol_regulator *reg, u32 domain)
{
	u32 fixed[SOL_TRAFFICS], i;

	memcpy(fixed, reg->domain[domain].fixed, sizeof(fixed));
	reset_domain(reg, domain);
	memcpy(reg->domain[domain].fixed, fixed, sizeof(fixed));
	for (i = 0; i < reg->n_cores; i++) {
		struct sol_core *c = &reg->core[i];

		if (c->domain != domain)
			continue;
		clear_pools(reg, c->pools);
		await_core(reg, c, c->taking_part && c->regulated);
	}
}

/* The share of r_min of a core with a weight. */
static u32 weighted_share(const struct sol_regulator *reg,
			  const struct sol_core *c, u32 kind)
{
	const struct sol_domain *d = &reg->domain[c->domain];
	u64 left = reg->r_min[kind] - d->fixed[kind];

	if (!c->weighs || !d->weights)
		return 1;
	/* At most 4096 cores of weight 10^6: the sum fits 32 bits. */
	return 1 + sol_div(left * c->now.weight, d->weights);
}

static void predict(const struct sol_regulator *reg, struct sol_core *c,
		    u32 kind, u32 used)
{
	struct sol_meter *m = &c->meter[kind];
	u64 input = used;

	/* Under-run: pretend that the core used more, as it would have. */
	if (c->ran_on[kind] && used < m->reserved)
		input = 2 * (u64)m->reserved - used;
	input *= SOL_EWMA_ONE;
	m->predicted = c->known ?
		(input * reg->set.ewma +
		 m->predicted * (SOL_EWMA_ONE - reg->set.ewma)) / SOL_EWMA_ONE :
		input;
}

/* Account for the period that ended. With those that were missed it predicts nothing. */
static void finish(struct sol_regulator *reg, struct sol_core *c,
		   const u32 *used)
{
	bool underrun = false;
	u32 kind;

	for (kind = 0; kind < SOL_TRAFFICS; kind++) {
		struct sol_meter *m = &c->meter[kind];

		if (!counts(reg, kind))
			continue;
		if (!c->missed)
			predict(reg, c, kind, used[kind]);
		underrun |= c->ran_on[kind] && used[kind] < m->reserved;
		c->stats.used[kind] += used[kind];
		if (used[kind] > m->budget)
			c->stats.beyond[kind] += used[kind] - m->budget;
	}
	c->stats.underruns += underrun;
	c->known |= !c->missed;
}

/* Lines 8-15: reservation, budget, and what goes to G. True: has a budget. */
static bool start_meter(struct sol_regulator *reg, struct sol_core *c, u32 kind)
{
	struct sol_meter *m = &c->meter[kind];
	u64 predicted = (m->predicted + SOL_EWMA_ONE / 2) / SOL_EWMA_ONE;

	m->reserved = c->now.weight ?
		weighted_share(reg, c, kind) :
		sol_fixed_lines(reg, &c->now, kind);
	m->budget = m->reserved;
	if (c->now.reclaim && c->known && predicted < m->reserved)
		m->budget = predicted;
	m->limit = m->budget;
	m->used = 0;
	c->ran_on[kind] = false;
	if (m->budget < m->reserved)
		donate(reg, c, kind, m->reserved - m->budget);
	return m->budget;
}

static void start(struct sol_regulator *reg, struct sol_core *c)
{
	struct sol_domain *d = &reg->domain[c->domain];
	bool has = false;
	u32 kind;

	for (kind = 0; kind < SOL_TRAFFICS; kind++)
		if (counts(reg, kind))
			has |= start_meter(reg, c, kind);
	c->done = !has;
	if (c->done)
		d->not_done--;
	c->stats.periods++;
}

/* ---- Answers ---- */

static struct sol_answer answer(const struct sol_regulator *reg,
				const struct sol_core *c, enum sol_order order)
{
	struct sol_answer a = { .order = order, .domain = c->domain };
	bool limited = c->taking_part && c->begun &&
		       !reg->domain[c->domain].best_effort;
	u32 kind;

	for (kind = 0; kind < SOL_TRAFFICS; kind++)
		a.limit[kind] = limited && counts(reg, kind) ?
				c->meter[kind].limit : SOL_NO_LIMIT;
	return a;
}

/* Nothing has changed: as the core was. */
static struct sol_answer unchanged(const struct sol_regulator *reg, u32 core)
{
	return answer(reg, &reg->core[core], sol_regulator_stopped(reg, core) ?
					     SOL_STOP : SOL_RUN);
}

/* Line 31: have all cores of the domain used their budgets? */
static struct sol_answer settle(struct sol_regulator *reg, struct sol_core *c)
{
	struct sol_domain *d = &reg->domain[c->domain];

	if (!d->not_done && d->stopped && !d->best_effort) {
		if (reg->set.sharing == SOL_SHARE_PROPORTIONAL)
			return answer(reg, c, SOL_RESTART);
		if (reg->set.sharing == SOL_SHARE_SPARE) {
			d->best_effort = true;
			return answer(reg, c, SOL_FREE);
		}
	}
	return answer(reg, c, c->stopped && !d->best_effort ? SOL_STOP :
							      SOL_RUN);
}

struct sol_answer sol_regulator_core(struct sol_regulator *reg, u32 core,
				     const u32 *used)
{
	struct sol_core *c = &reg->core[core];

	if (c->begun)
		return unchanged(reg, core);
	if (c->finish)
		finish(reg, c, used);
	c->finish = false;
	c->missed = false;
	c->begun = true;
	c->stopped = false;
	if (!c->taking_part)
		return answer(reg, c, SOL_RUN);
	start(reg, c);
	return settle(reg, c);
}

/* ---- A core has used its budget ---- */

/*
 * Lines 21-30 for one kind. False: the core must stop. Usage above the budget is paid
 * first; a debt that G can't pay means that G is empty.
 */
static bool reclaim(struct sol_regulator *reg, struct sol_core *c, u32 kind)
{
	struct sol_meter *m = &c->meter[kind];
	bool below = m->used < m->reserved;
	u32 debt = m->used - m->budget;

	if (!c->now.reclaim)
		return false;
	if (take(reg, c, kind, debt) == debt &&
	    take(reg, c, kind, below ? m->reserved - m->used : reg->q_min)) {
		m->limit = m->budget;
		return true;
	}
	if (below) {
		c->ran_on[kind] = true;
		m->limit = m->reserved;
	}
	return below;
}

static void stop(struct sol_regulator *reg, struct sol_core *c)
{
	struct sol_domain *d = &reg->domain[c->domain];

	c->stopped = true;
	c->done = true;
	c->stats.stops++;
	d->stopped++;
	d->not_done--;
}

struct sol_answer sol_regulator_used(struct sol_regulator *reg, u32 core,
				     const u32 *used)
{
	struct sol_core *c = &reg->core[core];
	struct sol_domain *d = &reg->domain[c->domain];
	bool asks = false, runs = true;
	u32 kind;

	if (!c->taking_part || !c->begun || !c->regulated)
		return answer(reg, c, SOL_RUN);
	for (kind = 0; kind < SOL_TRAFFICS; kind++)
		if (counts(reg, kind))
			c->meter[kind].used = used[kind];
	if (d->best_effort)
		return answer(reg, c, SOL_RUN);
	if (c->stopped)
		return answer(reg, c, SOL_STOP);
	for (kind = 0; kind < SOL_TRAFFICS; kind++) {
		if (!counts(reg, kind) || !used[kind] ||
		    used[kind] < c->meter[kind].limit)
			continue;
		asks = true;
		runs &= reclaim(reg, c, kind);
	}
	if (asks && c->done) {
		/* It had given all it had, and wakes up. */
		c->done = false;
		d->not_done++;
	}
	if (runs)
		return answer(reg, c, SOL_RUN);
	stop(reg, c);
	return settle(reg, c);
}

struct sol_answer sol_regulator_online(struct sol_regulator *reg, u32 core,
				       bool online)
{
	struct sol_core *c = &reg->core[core];
	struct sol_domain *d = &reg->domain[c->domain];

	c->online = online;
	c->finish &= online;
	c->missed &= online;
	if (online || !c->taking_part)
		return unchanged(reg, core);
	if (!c->done)
		d->not_done--;
	if (c->begun && c->stopped)
		d->stopped--;
	c->taking_part = false;
	c->stopped = false;
	return settle(reg, c);
}
