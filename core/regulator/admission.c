// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Reservations of a regulator: settings, admission, and which cores depend on
 * each other through the banks that they have colours in.
 *
 * Admission: in every pool, absolute reservations and one line for each core
 * with a weight must fit r_min. The paper asks for one sum over all cores; r_min
 * is what a single bank delivers, so that pools of other banks are not in the
 * sum.
 *
 * Locking: the caller's.
 */
#include "regulator.h"
#include "../text/text.h"

#define MAX_CORES	4096
#define ALL_IN_POOL_0	1ull

static u32 mega(u64 rate)
{
	return sol_div(rate, 1000000);
}

/* ---- Settings ---- */

static int less_than_a_line(const struct sol_regulation *set, u32 kind,
			    struct sol_err *err)
{
	return sol_refuse(err, 0, -EINVAL,
			  "r_min of %u MB/s is less than one line in a period of %u us",
			  mega(set->r_min[kind]), set->period);
}

int sol_regulation_check(const struct sol_regulation *set, struct sol_err *err)
{
	u32 kind;

	if (set->period < 10 || set->period > 1000000)
		return sol_refuse(err, 0, -EINVAL,
				  "period %u us: expected 10 to 1000000",
				  set->period);
	if (set->line < 16 || set->line > 4096 || set->line & (set->line - 1))
		return sol_refuse(err, 0, -EINVAL,
				  "line of %u bytes: expected a power of two from 16 to 4096",
				  set->line);
	if (!set->ewma || set->ewma > SOL_EWMA_ONE)
		return sol_refuse(err, 0, -EINVAL,
				  "weight %u/256 of the newest period: expected 1 to 256",
				  (u32)set->ewma);
	if (set->sharing > SOL_SHARE_PROPORTIONAL)
		return sol_refuse(err, 0, -EINVAL, "sharing: expected none, spare or proportional");
	if (set->peak > SOL_MAX_RATE)
		return sol_refuse(err, 0, -EINVAL,
				  "peak bandwidth: expected at most 10 TB/s");
	for (kind = 0; kind < SOL_TRAFFICS; kind++) {
		if (set->r_min[kind] > set->peak)
			return sol_refuse(err, 0, -EINVAL,
					  "r_min of %u MB/s is above the peak of %u MB/s",
					  mega(set->r_min[kind]),
					  mega(set->peak));
		if (set->r_min[kind] &&
		    !sol_regulation_lines(set, set->r_min[kind]))
			return less_than_a_line(set, kind, err);
	}
	return 0;
}

int sol_regulator_init(struct sol_regulator *reg,
		       const struct sol_regulation *set, struct sol_core *core,
		       u32 n_cores, struct sol_err *err)
{
	u32 i;
	int rc;

	if (!n_cores || n_cores > MAX_CORES)
		return sol_refuse(err, 0, -EINVAL,
				  "%u cores: expected 1 to 4096", n_cores);
	rc = sol_regulation_check(set, err);
	if (rc)
		return rc;
	if (!set->r_min[SOL_READS])
		return less_than_a_line(set, SOL_READS, err);
	memset(reg, 0, sizeof(*reg));
	memset(core, 0, n_cores * sizeof(*core));
	reg->set = *set;
	reg->core = core;
	reg->n_cores = n_cores;
	reg->pools = ALL_IN_POOL_0;
	for (i = 0; i < SOL_TRAFFICS; i++)
		reg->r_min[i] = sol_regulation_lines(set, set->r_min[i]);
	reg->q_min = set->q_min;
	if (!reg->q_min)
		reg->q_min = sol_regulation_lines(set, set->peak) / 100;
	if (!reg->q_min)
		reg->q_min = 1;
	for (i = 0; i < n_cores; i++) {
		core[i].online = true;
		core[i].active = true;
		core[i].pools = core[i].next_pools = ALL_IN_POOL_0;
	}
	return 0;
}

/* ---- Admission ---- */

/*
 * Sum over the cores of @pool but @without. @pools: which pools each is in;
 * NULL: as they are.
 */
static u64 pool_sum(const struct sol_regulator *reg, const u64 *pools, u32 pool,
		    u32 kind, u32 without)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < reg->n_cores; i++) {
		u64 in = pools ? pools[i] : reg->core[i].next_pools;

		if (i != without && reg->core[i].regulated && in >> pool & 1)
			sum += sol_fixed_lines(reg, &reg->core[i].want, kind);
	}
	return sum;
}

/* Bytes per second of @lines per period, in MB/s. */
static u32 mega_lines(const struct sol_regulator *reg, u64 lines)
{
	return sol_div(lines * reg->set.line, reg->set.period);
}

static const char *const kind_name[] = { "reads", "writes" };

static int check_fit(const struct sol_regulator *reg, u32 core,
		     const struct sol_reservation *want, struct sol_err *err)
{
	u64 pools;
	u32 kind;

	for (kind = 0; kind < SOL_TRAFFICS; kind++) {
		u32 lines = sol_fixed_lines(reg, want, kind);

		if (!reg->r_min[kind])
			continue;
		for (pools = reg->core[core].next_pools; pools;
		     pools &= pools - 1) {
			u64 sum = pool_sum(reg, NULL, __builtin_ctzll(pools),
					   kind, core);

			if (sum + lines <= reg->r_min[kind])
				continue;
			return sol_refuse(err, 0, -ENOSPC,
					  "core %u: %u MB/s of %s and %u MB/s that others reserved are more than the guaranteed %u MB/s",
					  core, mega_lines(reg, lines),
					  kind_name[kind],
					  mega_lines(reg, sum),
					  mega_lines(reg, reg->r_min[kind]));
		}
	}
	return 0;
}

static int check_want(const struct sol_regulator *reg, u32 core,
		      const struct sol_reservation *want, struct sol_err *err)
{
	u32 kind;

	if (want->weight > SOL_MAX_WEIGHT)
		return sol_refuse(err, 0, -EINVAL,
				  "core %u: weight %u: expected 1 to %u", core,
				  want->weight, SOL_MAX_WEIGHT);
	for (kind = 0; kind < SOL_TRAFFICS && !want->weight; kind++) {
		if (!reg->r_min[kind])
			continue;
		if (want->rate[kind] > SOL_MAX_RATE)
			return sol_refuse(err, 0, -EINVAL,
					  "core %u: %s: more than 10 TB/s",
					  core, kind_name[kind]);
		if (!sol_regulation_lines(&reg->set, want->rate[kind]))
			return sol_refuse(err, 0, -EINVAL,
					  "core %u: %s: less than one line of %u bytes in a period of %u us would stop it for good",
					  core, kind_name[kind],
					  reg->set.line, reg->set.period);
	}
	return check_fit(reg, core, want, err);
}

int sol_regulator_reserve(struct sol_regulator *reg, u32 core,
			  const struct sol_reservation *want,
			  struct sol_err *err)
{
	struct sol_core *c;
	int rc;

	if (core >= reg->n_cores)
		return sol_refuse(err, 0, -EINVAL,
				  "core %u: there are cores 0 to %u", core,
				  reg->n_cores - 1);
	c = &reg->core[core];
	if (!want) {
		reg->pools_changed |= c->regulated;
		c->regulated = false;
		return 0;
	}
	rc = check_want(reg, core, want, err);
	if (rc)
		return rc;
	c->want = *want;
	if (!c->regulated) {
		c->known = false;
		reg->pools_changed = true;
	}
	c->regulated = true;
	return 0;
}

static bool same(const struct sol_reservation *a,
		 const struct sol_reservation *b)
{
	return a->rate[SOL_READS] == b->rate[SOL_READS] &&
	       a->rate[SOL_WRITES] == b->rate[SOL_WRITES] &&
	       a->weight == b->weight && a->reclaim == b->reclaim;
}

void sol_regulator_put(struct sol_regulator *reg, u32 core,
		       const struct sol_reservation *want, u64 pools)
{
	struct sol_core *c = &reg->core[core];

	if (want && !(c->regulated && same(&c->want, want))) {
		c->want = *want;
		c->known = false;
	}
	reg->pools_changed |= c->regulated != !!want || c->next_pools != pools;
	c->regulated = !!want;
	c->next_pools = pools;
}

void sol_regulator_weight(struct sol_regulator *reg, u32 core, u32 weight)
{
	struct sol_core *c = &reg->core[core];

	if (!c->regulated || !c->want.weight)
		return;
	if (weight > SOL_MAX_WEIGHT)
		weight = SOL_MAX_WEIGHT;
	c->task_weight = weight ? weight : 1;
}

void sol_regulator_active(struct sol_regulator *reg, u32 core, bool active)
{
	reg->core[core].active = active;
}

/* ---- Pools and domains ---- */

static int check_pools(const struct sol_regulator *reg, const u64 *pools,
		       struct sol_err *err)
{
	u32 i, pool, kind;

	for (i = 0; i < reg->n_cores; i++)
		if (!pools[i])
			return sol_refuse(err, 0, -EINVAL,
					  "core %u is in no pool", i);
	for (pool = 0; pool < SOL_POOLS; pool++)
		for (kind = 0; kind < SOL_TRAFFICS; kind++) {
			u64 sum = pool_sum(reg, pools, pool, kind,
					   reg->n_cores);

			if (reg->r_min[kind] && sum > reg->r_min[kind])
				return sol_refuse(err, 0, -ENOSPC,
						  "cores that share a bank set reserve %u MB/s of %s together, more than the guaranteed %u MB/s",
						  mega_lines(reg, sum),
						  kind_name[kind],
						  mega_lines(reg, reg->r_min[kind]));
		}
	return 0;
}

int sol_regulator_pools(struct sol_regulator *reg, const u64 *pools,
			struct sol_err *err)
{
	u32 i;
	int rc;

	rc = check_pools(reg, pools, err);
	if (rc)
		return rc;
	for (i = 0; i < reg->n_cores; i++)
		reg->core[i].next_pools = pools[i];
	reg->pools_changed = true;
	return 0;
}

static bool in_set(const struct sol_colors *colors, u32 set)
{
	return !colors || !colors->by_bank || sol_bit(colors->sets, set);
}

static bool same_users(const struct sol_colors *const *colors, u32 n_cores,
		       u32 a, u32 b)
{
	u32 i;

	for (i = 0; i < n_cores; i++)
		if (in_set(colors[i], a) != in_set(colors[i], b))
			return false;
	return true;
}

void sol_pools(u32 n_bank_sets, const struct sol_colors *const *colors,
	       u32 n_cores, u64 *pools)
{
	u32 first[SOL_POOLS];	/* a bank set of each pool */
	u32 n = 0, set, pool, i;

	memset(pools, 0, n_cores * sizeof(*pools));
	for (set = 0; set < n_bank_sets; set++) {
		for (i = 0; i < n_cores && !in_set(colors[i], set); i++)
			;
		if (i == n_cores)
			continue;	/* nobody's */
		for (pool = 0; pool < n; pool++)
			if (same_users(colors, n_cores, first[pool], set))
				break;
		if (pool < n)
			continue;
		if (n < SOL_POOLS)
			first[n++] = set;
		else
			pool = SOL_POOLS - 1;
		for (i = 0; i < n_cores; i++)
			if (in_set(colors[i], set))
				pools[i] |= 1ull << pool;
	}
}
