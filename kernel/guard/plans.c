// SPDX-License-Identifier: GPL-2.0
/*
 * Plans: owners and reservations of all CPUs, to be changed, kept or put back.
 *
 * Locking: sol_guard_mutex. sol_group_mutex nests inside.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../group/group.h"
#include "../palette/map.h"
#include "plans.h"

/* Least budget of a clock event in a period: it pays for some interrupts. */
#define CLOCK_MIN_NS	20000

/* ---- Pools: who shares bank sets with whom ---- */

static const struct sol_colors *colors_of(const struct sol_group *owner)
{
	/* A group that grows or spills may come to share any bank set. */
	return owner && owner->exhaust == SOL_FAIL ? &owner->colors : NULL;
}

/* Pools of the colours that @group has now would be wrong in a moment. */
static int check_stays(const struct sol_group *group)
{
	if (!group || !group->recolorers)
		return 0;
	return sol_deny(-EBUSY, "by_bank: the colours of group %s are just being changed; try again",
			group->name);
}

/* @owner: group of each CPU, or NULL. Fills @pools. */
int sol_guard_pools(const struct sol_guard_set *set,
		      struct sol_group *const *owner, u64 *pools)
{
	const struct sol_colors **colors;
	const struct sol_map *map;
	int cpu, err = 0;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		pools[cpu] = 1;
	if (!set->by_bank)
		return 0;
	for (cpu = 0; cpu < nr_cpu_ids && !err; cpu++)
		err = check_stays(owner[cpu]);
	if (err)
		return err;
	colors = kvcalloc(nr_cpu_ids, sizeof(*colors), GFP_KERNEL);
	if (!colors)
		return sol_no_memory("guard");
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		colors[cpu] = colors_of(owner[cpu]);
	mutex_lock(&sol_group_mutex);
	map = sol_map_in_use();
	if (map)
		sol_pools(map->n_bank_sets, colors, nr_cpu_ids, pools);
	else
		err = sol_deny(-ENXIO, "by_bank: no address map yet; write one to map first");
	mutex_unlock(&sol_group_mutex);
	kvfree(colors);
	return err;
}

/* ---- Clocks ---- */

/*
 * Without a PMU a clock event stands for traffic. It counts the time of regulation,
 * too: if its interrupts used up the budget, nothing else would ever run. A weight
 * promises no more than one line.
 */
int sol_guard_check_clock(const char *what, const struct sol_guard_set *set,
			  const struct sol_reservation *want)
{
	u64 ns;
	int i;

	for (i = 0; i < SOL_TRAFFICS; i++) {
		if (!*set->name[i] || !sol_event_is_clock(&set->event[i]))
			continue;
		if (want->weight)
			return sol_deny(-EINVAL,
					"%s weight=%u guarantees one line, which is one nanosecond of event %s; reserve a rate (see event in guard/settings)",
					what, want->weight, set->name[i]);
		ns = mul_u64_u64_div_u64(want->rate[i], set->rules.period,
					 (u64)set->rules.line * USEC_PER_SEC);
		if (ns < CLOCK_MIN_NS)
			return sol_deny(-EINVAL,
					"%s %llu bytes/s of event %s, which counts time, are %llu ns in each period of %u us; at least %u ns, for the regulation itself counts (see event in guard/settings)",
					what, (u64)want->rate[i], set->name[i], ns,
					set->rules.period, CLOCK_MIN_NS);
	}
	return 0;
}

/* ---- Plans ---- */

void sol_plans_free(struct sol_plans *p)
{
	kvfree(p->core);
	kvfree(p->owner);
	kvfree(p->pools);
}

int sol_plans_take(struct sol_plans *p)
{
	int cpu;

	p->core = kvcalloc(nr_cpu_ids, sizeof(*p->core), GFP_KERNEL);
	p->owner = kvcalloc(nr_cpu_ids, sizeof(*p->owner), GFP_KERNEL);
	p->pools = kvcalloc(nr_cpu_ids, sizeof(*p->pools), GFP_KERNEL);
	if (!p->core || !p->owner || !p->pools) {
		sol_plans_free(p);
		return sol_no_memory("guard");
	}
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		p->owner[cpu] = sol_guard.core[cpu].owner;
		if (!sol_guard.reg)
			continue;
		p->core[cpu].want = sol_guard_rules(cpu)->want;
		p->core[cpu].regulated = sol_guard_rules(cpu)->regulated;
	}
	return 0;
}

int sol_plans_try(const struct sol_plans *p, struct sol_regulator *reg,
		  struct sol_err *why)
{
	int cpu, err = sol_regulator_pools(reg, p->pools, why);

	for (cpu = 0; !err && cpu < nr_cpu_ids; cpu++) {
		if (p->core[cpu].regulated)
			err = sol_regulator_reserve(reg, cpu,
						    &p->core[cpu].want, why);
		cond_resched();
	}
	return err;
}

void sol_plans_put(const struct sol_plans *p, struct sol_regulator *reg)
{
	int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		sol_regulator_put(reg, cpu,
				  p->core[cpu].regulated ? &p->core[cpu].want :
							   NULL,
				  p->pools[cpu]);
}
