// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of the guard.
 *
 * A change makes a new regulator with the reservations of the old one, so that all
 * reservations are checked against the new settings before anything changes. Then all
 * CPUs are let go, the regulators are exchanged, and the CPUs come back. If one does not,
 * the writer is told, and work tries again. Statistics go on; predictions begin anew.
 *
 * Locking: state.h.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../compat/stop.h"
#include "guard.h"
#include "hold.h"
#include "plans.h"

/* ---- Regulators ---- */

void sol_guard_regulator_free(struct sol_regulator *reg)
{
	if (reg)
		kvfree(reg->core);
	kvfree(reg);
}

static struct sol_regulation rules_of_set(const struct sol_guard_set *set)
{
	struct sol_regulation rules = set->rules;

	if (!rules.peak)	/* unknown: Q_min is small then */
		rules.peak = max(rules.r_min[SOL_READS],
				 rules.r_min[SOL_WRITES]);
	return rules;
}

struct sol_regulator *sol_guard_regulator_alloc(const struct sol_guard_set *set)
{
	struct sol_regulator *reg = kvzalloc(sizeof(*reg), GFP_KERNEL);
	struct sol_core *core = kvcalloc(nr_cpu_ids, sizeof(*core), GFP_KERNEL);
	struct sol_regulation rules = rules_of_set(set);
	struct sol_err why;
	int err;

	if (reg && core) {
		err = sol_regulator_init(reg, &rules, core, nr_cpu_ids, &why);
		if (!err)
			return reg;
		sol_deny(err, "settings: %s", why.text);
	} else {
		err = sol_no_memory("guard");
	}
	kvfree(core);
	kvfree(reg);
	return ERR_PTR(err);
}

static int check_clocks(const struct sol_guard_set *set,
			const struct sol_plans *p)
{
	char what[32];
	int cpu, err = 0;

	for (cpu = 0; !err && cpu < nr_cpu_ids; cpu++) {
		if (!p->core[cpu].regulated)
			continue;
		snprintf(what, sizeof(what), "settings: CPU %d's", cpu);
		err = sol_guard_check_clock(what, set, &p->core[cpu].want);
	}
	return err;
}

/* Reservations must be such as could be written with @set: without writes that nobody counts. */
static void drop_writes(const struct sol_guard_set *set, struct sol_plans *p)
{
	int cpu;

	for (cpu = 0; !*set->name[SOL_WRITES] && cpu < nr_cpu_ids; cpu++)
		p->core[cpu].want.rate[SOL_WRITES] = 0;
}

/* A regulator for @set with the present reservations; an ERR_PTR, and words. */
static struct sol_regulator *regulator_new(const struct sol_guard_set *set)
{
	struct sol_regulator *reg;
	struct sol_err why;
	struct sol_plans p;
	int cpu, err;

	err = sol_plans_take(&p);
	if (err)
		return ERR_PTR(err);
	drop_writes(set, &p);
	err = check_clocks(set, &p) ?: sol_guard_pools(set, p.owner, p.pools);
	reg = err ? ERR_PTR(err) : sol_guard_regulator_alloc(set);
	if (IS_ERR(reg))
		goto out;
	err = sol_plans_try(&p, reg, &why);
	if (err) {
		sol_deny(err, "settings: %s", why.text);
		sol_guard_regulator_free(reg);
		reg = ERR_PTR(err);
		goto out;
	}
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		reg->core[cpu].online = false;
out:
	sol_plans_free(&p);
	return reg;
}

/* ---- Checks ---- */

/* Is what @set counts of kind @i what the CPUs' counters count already? */
static bool counted_already(const struct sol_guard_set *set, int i)
{
	const struct sol_event *event = &set->event[i];
	const struct sol_event *now = &sol_guard.set.event[i];

	return *sol_guard.set.name[i] && event->type == now->type &&
	       event->config == now->config && set->kernel == sol_guard.set.kernel;
}

/*
 * Can all regulated CPUs count @set's events? Tried before anything changes, hence beside
 * the counters that they have: one more for each event that is new.
 */
static int try_counters(const struct sol_guard_set *set)
{
	int cpu, i;

	for_each_cpu(cpu, &sol_guard.ready) {
		for (i = 0; i < SOL_TRAFFICS; i++) {
			struct perf_event *counter;
			bool works;

			if (!*set->name[i] || counted_already(set, i))
				continue;
			counter = sol_counter_new(&set->event[i], cpu,
						  set->kernel, NULL, NULL);
			works = !IS_ERR(counter) && sol_counter_works(counter);
			sol_counter_free(counter);
			if (!works)
				return sol_deny(-EBUSY,
						"event %s: CPU %d has no counter for it (all in use, or it is unknown there)",
						set->name[i], cpu);
		}
	}
	return 0;
}

/* Also while r_min is 0: settings that are shown are settings that can be had. */
static int check_rules(const struct sol_guard_set *set)
{
	struct sol_regulation rules = rules_of_set(set);
	struct sol_err why;
	int err = sol_regulation_check(&rules, &why);

	return err ? sol_deny(err, "settings: %s", why.text) : 0;
}

static int check_kinds(const struct sol_guard_set *set)
{
	if (!*set->name[SOL_WRITES] != !set->rules.r_min[SOL_WRITES])
		return sol_deny(-EINVAL,
				"settings: write_event and write_r_min belong together: both, or neither");
	return 0;
}

/* Any kernel can hold tasks; stopping a CPU needs more. */
int sol_guard_check_stop(const struct sol_guard_set *set)
{
	if (set->hold)
		return 0;
	if (sol_guard_unable)
		return sol_deny(-EOPNOTSUPP,
				"stop anywhere: this kernel lacks a function that stopping a CPU needs; the kernel log named it when soloist was loaded. Write `stop user` to guard/settings");
	if (!SOL_CAN_OUTRANK_ALL)
		return sol_deny(-EOPNOTSUPP,
				"stop anywhere: this kernel was built without CONFIG_CPU_FREQ_GOV_SCHEDUTIL, and nothing of ours outranks its deadline tasks. Write `stop user` to guard/settings");
	return 0;
}

static bool any_regulated(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (sol_guard_regulated(cpu))
			return true;
	return false;
}

/* ---- Taking settings ---- */

void sol_guard_stats_add(struct sol_core_stats *sum,
		      const struct sol_core_stats *lines, u32 line)
{
	int i;

	for (i = 0; i < SOL_TRAFFICS; i++) {
		sum->used[i] += lines->used[i] * line;
		sum->donated[i] += lines->donated[i] * line;
		sum->reclaimed[i] += lines->reclaimed[i] * line;
		sum->beyond[i] += lines->beyond[i] * line;
	}
	sum->periods += lines->periods;
	sum->stops += lines->stops;
	sum->underruns += lines->underruns;
}

/* Keep what @cpu counted, converted with the length of line that it counted with. */
static void stats_keep(int cpu)
{
	struct sol_core_stats *lines = &sol_guard_rules(cpu)->stats;

	/* A reader adds both. */
	raw_spin_lock_irq(&sol_guard.lock);
	sol_guard_stats_add(&sol_guard.core[cpu].before, lines,
			    sol_guard.set.rules.line);
	memset(lines, 0, sizeof(*lines));
	raw_spin_unlock_irq(&sol_guard.lock);
}

/* All CPUs are let go meanwhile. */
void sol_guard_swap(struct sol_regulator *reg,
			   const struct sol_guard_set *set)
{
	struct sol_regulator *old = sol_guard.reg;
	int cpu;

	sol_guard_all_down();
	for (cpu = 0; old && cpu < nr_cpu_ids; cpu++)
		stats_keep(cpu);
	raw_spin_lock_irq(&sol_guard.lock);
	sol_guard.reg = reg;
	sol_guard.set = *set;
	raw_spin_unlock_irq(&sol_guard.lock);
	sol_guard_regulator_free(old);
	sol_guard_reconcile();
}

/*
 * All CPUs were let go, and one may not have come back. If it is tried again, that is no
 * refusal: 1, and words.
 */
static int all_back(void)
{
	int cpu, err = 0;

	for (cpu = 0; !err && cpu < nr_cpu_ids; cpu++)
		err = sol_guard_trouble("settings are in force, but", cpu);
	return sol_guard_may_pass(err) ? 1 : err;
}

static int set_apply(const struct sol_guard_set *set)
{
	struct sol_regulator *reg;
	int err = check_kinds(set) ?: check_rules(set);

	if (err)
		return err;
	if (!set->rules.r_min[SOL_READS]) {
		if (any_regulated())
			return sol_deny(-EBUSY,
					"settings: r_min 0: CPUs have reservations; take these off first");
		sol_guard_swap(NULL, set);
		return 0;
	}
	if (any_regulated())
		err = sol_guard_check_stop(set);
	if (err)
		return err;
	reg = regulator_new(set);
	if (IS_ERR(reg))
		return PTR_ERR(reg);
	err = try_counters(set);
	if (err) {
		sol_guard_regulator_free(reg);
		return err;
	}
	sol_guard_swap(reg, set);
	return all_back();
}

int sol_guard_edit(int (*edit)(struct sol_guard_set *set, const void *arg),
		   const void *arg)
{
	struct sol_guard_set set;
	int err;

	mutex_lock(&sol_guard_mutex);
	set = sol_guard.set;
	err = edit(&set, arg);
	if (!err && set.hold)
		err = sol_guard_hold_begin();
	if (!err)
		err = set_apply(&set);
	if (!sol_guard.set.hold)
		sol_guard_hold_end();
	mutex_unlock(&sol_guard_mutex);
	return err;
}

void sol_guard_settings(struct sol_guard_set *set)
{
	raw_spin_lock_irq(&sol_guard.lock);
	*set = sol_guard.set;
	raw_spin_unlock_irq(&sol_guard.lock);
}
