// SPDX-License-Identifier: GPL-2.0
/*
 * Guard: settings, reservations, and which CPUs are under regulation.
 *
 * Nothing is counted and nothing interrupted until a CPU has a reservation; then
 * that CPU gets its counters, a thread to stand still in, and calls at the
 * beginning of periods. The first makes the timer run, the last stops it.
 *
 * A change of settings makes a new regulator with the reservations of the old,
 * so that all of them are checked against the new settings before anything
 * changes; then all CPUs are let go, the regulators change places, and the CPUs
 * come back. Statistics go on; predictions begin anew.
 *
 * CPU hotplug: a CPU that goes keeps its reservation and leaves at once, in the
 * callback. Freeing what it had, and making it ready when it comes back, is done
 * by a work item: making a perf event takes the lock that callbacks run under.
 *
 * Locking: state.h.
 */
#define pr_fmt(fmt) "soloist: " fmt

#include <linux/cpuhotplug.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../compat/throttle.h"
#include "../group/group.h"
#include "../palette/map.h"
#include "cores.h"
#include "guard.h"
#include "hold.h"
#include "period.h"
#include "../command/status.h"

/* Of a CPU's clock in a period: some interrupts' worth. */
#define CLOCK_MIN_NS	20000

static DEFINE_MUTEX(guard_mutex);
static int hotplug_state;
static int unable;	/* errno: this kernel lacks what the log says */

static struct sol_core *rules_of(int cpu)
{
	return &sol_guard.reg->core[cpu];
}

static bool regulated(int cpu)
{
	return sol_guard.reg && rules_of(cpu)->regulated;
}

/* ---- CPUs come and go; guard_mutex ---- */

static void core_reconcile(struct sol_guard_core *core)
{
	bool want = regulated(core->cpu) && !READ_ONCE(core->gone);

	if (core->halter && (READ_ONCE(core->stale) || !want))
		sol_guard_core_down(core);
	core->trouble = 0;
	if (want && !core->halter)
		core->trouble = sol_guard_core_up(core);
}

static void reconcile(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		core_reconcile(&sol_guard.core[cpu]);
	sol_guard_period_move();
}

static void all_down(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (sol_guard.core[cpu].halter)
			sol_guard_core_down(&sol_guard.core[cpu]);
	sol_guard_period_move();
}

static void hotplug_fn(struct work_struct *work)
{
	mutex_lock(&guard_mutex);
	reconcile();
	mutex_unlock(&guard_mutex);
}

static int guard_online(unsigned int cpu)
{
	WRITE_ONCE(sol_guard.core[cpu].gone, false);
	schedule_work(&sol_guard.reconcile);
	return 0;
}

static int guard_offline(unsigned int cpu)
{
	struct sol_guard_core *core = &sol_guard.core[cpu];

	sol_guard_core_offline(core);
	sol_guard_period_move();
	schedule_work(&sol_guard.reconcile);
	return 0;
}

/* ---- Pools: who shares bank sets with whom; guard_mutex ---- */

static const struct sol_colors *colors_of(const struct sol_group *owner)
{
	/* One that grows may come to share any. */
	return owner && owner->exhaust != SOL_GROW ? &owner->colors : NULL;
}

/* @owner: group of each CPU, or NULL. Fills @pools. */
static int find_pools(const struct sol_guard_set *set,
		      struct sol_group *const *owner, u64 *pools)
{
	const struct sol_colors **colors;
	const struct sol_map *map;
	int cpu, err = 0;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		pools[cpu] = 1;
	if (!set->by_bank)
		return 0;
	colors = kvcalloc(nr_cpu_ids, sizeof(*colors), GFP_KERNEL);
	if (!colors)
		return -ENOMEM;
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

/* ---- What would be restored if a change is refused ---- */

struct plan {
	struct sol_reservation want;
	bool regulated;
};

/* Owners and reservations of all CPUs, to be changed, kept or put back. */
struct plans {
	struct plan *core;
	struct sol_group **owner;
	u64 *pools;
};

static void plans_free(struct plans *p)
{
	kvfree(p->core);
	kvfree(p->owner);
	kvfree(p->pools);
}

static int plans_take(struct plans *p)
{
	int cpu;

	p->core = kvcalloc(nr_cpu_ids, sizeof(*p->core), GFP_KERNEL);
	p->owner = kvcalloc(nr_cpu_ids, sizeof(*p->owner), GFP_KERNEL);
	p->pools = kvcalloc(nr_cpu_ids, sizeof(*p->pools), GFP_KERNEL);
	if (!p->core || !p->owner || !p->pools) {
		plans_free(p);
		return -ENOMEM;
	}
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		p->owner[cpu] = sol_guard.core[cpu].owner;
		if (!sol_guard.reg)
			continue;
		p->core[cpu].want = rules_of(cpu)->want;
		p->core[cpu].regulated = rules_of(cpu)->regulated;
	}
	return 0;
}

static bool same(const struct sol_reservation *a,
		 const struct sol_reservation *b)
{
	return a->rate[SOL_READS] == b->rate[SOL_READS] &&
	       a->rate[SOL_WRITES] == b->rate[SOL_WRITES] &&
	       a->weight == b->weight && a->reclaim == b->reclaim;
}

/*
 * Make @reg, which has no reservations or other ones, have those of @p. Under
 * the lock, or @reg is nobody's yet.
 */
static int plans_apply(const struct plans *p, struct sol_regulator *reg,
		       struct sol_err *why)
{
	int cpu, err;

	/* First less, so that what changes fits at every step. */
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (!p->core[cpu].regulated ||
		    !same(&p->core[cpu].want, &reg->core[cpu].want))
			sol_regulator_reserve(reg, cpu, NULL, NULL);
	err = sol_regulator_pools(reg, p->pools, why);
	for (cpu = 0; !err && cpu < nr_cpu_ids; cpu++)
		if (p->core[cpu].regulated)
			err = sol_regulator_reserve(reg, cpu,
						    &p->core[cpu].want, why);
	return err;
}

/* ---- Regulators ---- */

static void regulator_free(struct sol_regulator *reg)
{
	if (reg)
		kvfree(reg->core);
	kvfree(reg);
}

static struct sol_regulator *regulator_alloc(const struct sol_guard_set *set)
{
	struct sol_regulator *reg = kvzalloc(sizeof(*reg), GFP_KERNEL);
	struct sol_core *core = kvcalloc(nr_cpu_ids, sizeof(*core), GFP_KERNEL);
	struct sol_regulation rules = set->rules;
	struct sol_err why;
	int err = -ENOMEM;

	if (!rules.peak)	/* not known: then Q_min is small */
		rules.peak = max(rules.r_min[SOL_READS],
				 rules.r_min[SOL_WRITES]);
	if (reg && core) {
		err = sol_regulator_init(reg, &rules, core, nr_cpu_ids, &why);
		if (!err)
			return reg;
		sol_deny(err, "settings: %s", why.text);
	}
	kvfree(core);
	kvfree(reg);
	return ERR_PTR(err);
}

/* A regulator for @set with today's reservations, or words. */
static struct sol_regulator *regulator_new(const struct sol_guard_set *set)
{
	struct sol_regulator *reg;
	struct sol_err why;
	struct plans p;
	int cpu, err;

	err = plans_take(&p);
	if (err)
		return ERR_PTR(err);
	err = find_pools(set, p.owner, p.pools);
	reg = err ? ERR_PTR(err) : regulator_alloc(set);
	if (IS_ERR(reg))
		goto out;
	err = plans_apply(&p, reg, &why);
	if (err) {
		sol_deny(err, "settings: %s", why.text);
		regulator_free(reg);
		reg = ERR_PTR(err);
		goto out;
	}
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		reg->core[cpu].online = false;
out:
	plans_free(&p);
	return reg;
}

/* ---- Settings ---- */

/* Would @set's events be counted where they are needed? Tried beforehand. */
static int try_counters(const struct sol_guard_set *set)
{
	int cpu, i;

	for_each_cpu(cpu, &sol_guard.ready) {
		for (i = 0; i < SOL_TRAFFICS; i++) {
			struct perf_event *counter;
			bool works;

			if (!*set->name[i])
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

static int check_kinds(const struct sol_guard_set *set)
{
	if (!*set->name[SOL_WRITES] != !set->rules.r_min[SOL_WRITES])
		return sol_deny(-EINVAL,
				"settings: write_event and write_r_min belong together: both, or neither");
	return 0;
}

/* Can this kernel stop a CPU as @set says? Tasks can be held on any. */
static int check_stop(const struct sol_guard_set *set)
{
	if (set->hold)
		return 0;
	if (unable)
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
		if (regulated(cpu))
			return true;
	return false;
}

/* Add what was counted in lines of @line bytes to @sum, which has bytes. */
static void stats_add(struct sol_core_stats *sum,
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

/*
 * All CPUs are let go meanwhile; what was counted stays, by the line that it was
 * counted with.
 */
static void regulator_swap(struct sol_regulator *reg,
			   const struct sol_guard_set *set)
{
	struct sol_regulator *old = sol_guard.reg;
	int cpu;

	all_down();
	for (cpu = 0; old && cpu < nr_cpu_ids; cpu++)
		stats_add(&sol_guard.core[cpu].before, &old->core[cpu].stats,
			  sol_guard.set.rules.line);
	raw_spin_lock_irq(&sol_guard.lock);
	sol_guard.reg = reg;
	sol_guard.set = *set;
	raw_spin_unlock_irq(&sol_guard.lock);
	regulator_free(old);
	reconcile();
}

static int set_apply(const struct sol_guard_set *set)
{
	struct sol_regulator *reg;
	int err = check_kinds(set);

	if (err)
		return err;
	if (!set->rules.r_min[SOL_READS]) {
		if (any_regulated())
			return sol_deny(-EBUSY,
					"settings: r_min 0: CPUs have reservations; take these off first");
		regulator_swap(NULL, set);
		return 0;
	}
	if (any_regulated())
		err = check_stop(set);
	if (err)
		return err;
	reg = regulator_new(set);
	if (IS_ERR(reg))
		return PTR_ERR(reg);
	err = try_counters(set);
	if (err) {
		regulator_free(reg);
		return err;
	}
	regulator_swap(reg, set);
	return 0;
}

int sol_guard_edit(int (*edit)(struct sol_guard_set *set, const void *arg),
		   const void *arg)
{
	struct sol_guard_set set;
	int err;

	mutex_lock(&guard_mutex);
	set = sol_guard.set;
	err = edit(&set, arg);
	if (!err && set.hold)
		err = sol_guard_hold_begin();
	if (!err)
		err = set_apply(&set);
	if (!sol_guard.set.hold)
		sol_guard_hold_end();
	mutex_unlock(&guard_mutex);
	return err;
}

void sol_guard_settings(struct sol_guard_set *set)
{
	mutex_lock(&guard_mutex);
	*set = sol_guard.set;
	mutex_unlock(&guard_mutex);
}

/* ---- Reservations ---- */

static int check_owners(const struct sol_group *owner,
			const struct cpumask *cpus)
{
	int cpu;

	for_each_cpu(cpu, cpus) {
		const struct sol_group *other = sol_guard.core[cpu].owner;

		if (!regulated(cpu) || other == owner)
			continue;
		if (other)
			return sol_deny(-EBUSY,
					"bandwidth: CPU %d is reserved by group %s",
					cpu, other->name);
		return sol_deny(-EBUSY,
				"bandwidth: CPU %d has a reservation of its own; write off to guard/cpu%d/bandwidth",
				cpu, cpu);
	}
	return 0;
}

/* Make the reservations @p; words and nothing changed if they don't fit. */
static int plans_commit(const struct plans *p)
{
	struct sol_err why;
	int cpu, err;

	raw_spin_lock_irq(&sol_guard.lock);
	err = plans_apply(p, sol_guard.reg, &why);
	raw_spin_unlock_irq(&sol_guard.lock);
	if (err)
		return sol_deny(err, "bandwidth: %s", why.text);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		sol_guard.core[cpu].owner = p->owner[cpu];
	reconcile();
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (sol_guard.core[cpu].trouble &&
		    !READ_ONCE(sol_guard.core[cpu].gone))
			return sol_deny(sol_guard.core[cpu].trouble,
					"bandwidth: CPU %d can't be regulated: event %s: %s",
					cpu, sol_guard.set.name[0],
					sol_counter_why(sol_guard.core[cpu].trouble));
	return 0;
}

/* It went before, so it goes. */
static void plans_restore(const struct plans *p)
{
	struct sol_err why;
	int cpu, err;

	raw_spin_lock_irq(&sol_guard.lock);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		sol_regulator_reserve(sol_guard.reg, cpu, NULL, NULL);
	err = plans_apply(p, sol_guard.reg, &why);
	raw_spin_unlock_irq(&sol_guard.lock);
	WARN_ON_ONCE(err);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		sol_guard.core[cpu].owner = p->owner[cpu];
	reconcile();
}

static int reserve(struct sol_group *owner, const struct cpumask *cpus,
		   const struct sol_reservation *want)
{
	struct plans old, new;
	int cpu, err = plans_take(&old);

	if (err)
		return err;
	err = plans_take(&new);
	if (err)
		goto out_old;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		if (owner && new.owner[cpu] == owner) {
			new.owner[cpu] = NULL;
			new.core[cpu].regulated = false;
		}
		if (!cpus || !cpumask_test_cpu(cpu, cpus))
			continue;
		new.owner[cpu] = want ? owner : NULL;
		new.core[cpu].regulated = !!want;
		if (want)
			new.core[cpu].want = *want;
	}
	err = find_pools(&sol_guard.set, old.owner, old.pools) ?:
	      find_pools(&sol_guard.set, new.owner, new.pools);
	if (!err) {
		err = plans_commit(&new);
		if (err)
			plans_restore(&old);
	}
	plans_free(&new);
out_old:
	plans_free(&old);
	return err;
}

/*
 * A clock stands in for traffic where there is no PMU, and what regulates counts
 * too: with a budget that its interrupts use up, nothing else would ever run.
 */
static int check_clock(const struct sol_reservation *want)
{
	const struct sol_guard_set *set = &sol_guard.set;
	u64 ns;
	int i;

	for (i = 0; i < SOL_TRAFFICS; i++) {
		if (!want->rate[i] || !sol_event_is_clock(&set->event[i]))
			continue;
		ns = mul_u64_u64_div_u64(want->rate[i], set->rules.period,
					 (u64)set->rules.line * USEC_PER_SEC);
		if (ns < CLOCK_MIN_NS)
			return sol_deny(-EINVAL,
					"bandwidth: %llu bytes/s of event %s, which counts time, are %llu ns in each period of %u us; at least %u ns, for the regulation itself counts (see event in guard/settings)",
					(u64)want->rate[i], set->name[i], ns,
					set->rules.period, CLOCK_MIN_NS);
	}
	return 0;
}

int sol_guard_reserve(struct sol_group *owner, const struct cpumask *cpus,
		      const struct sol_reservation *want)
{
	int err = 0;

	mutex_lock(&guard_mutex);
	if (want && !sol_guard.reg)
		err = sol_deny(-ENXIO,
			       "bandwidth: r_min is not set; `soloist guard rmin` tells how much, `soloist guard set --r-min RATE` sets it (r_min in guard/settings)");
	if (!err && want)
		err = check_stop(&sol_guard.set) ?: check_clock(want);
	if (!err && cpus)
		err = check_owners(owner, cpus);
	if (!err && sol_guard.reg)
		err = reserve(owner, cpus, want);
	mutex_unlock(&guard_mutex);
	return err;
}

/*
 * Who shares bank sets with whom is left as it was, which needs no memory: the
 * CPUs have no reservation now, and the next one asks anew.
 */
void sol_guard_disown(struct sol_group *owner)
{
	int cpu;

	mutex_lock(&guard_mutex);
	for_each_possible_cpu(cpu) {
		if (sol_guard.core[cpu].owner != owner)
			continue;
		raw_spin_lock_irq(&sol_guard.lock);
		if (sol_guard.reg)
			sol_regulator_reserve(sol_guard.reg, cpu, NULL, NULL);
		raw_spin_unlock_irq(&sol_guard.lock);
		sol_guard.core[cpu].owner = NULL;
	}
	reconcile();
	mutex_unlock(&guard_mutex);
}

bool sol_guard_reserved(const struct sol_group *owner, struct cpumask *cpus,
			struct sol_reservation *want)
{
	bool any = false;
	int cpu;

	cpumask_clear(cpus);
	mutex_lock(&guard_mutex);
	for_each_possible_cpu(cpu) {
		if (!regulated(cpu) || sol_guard.core[cpu].owner != owner)
			continue;
		cpumask_set_cpu(cpu, cpus);
		*want = rules_of(cpu)->want;
		any = true;
	}
	mutex_unlock(&guard_mutex);
	return any;
}

bool sol_guard_reserved_on(int cpu, struct sol_group **owner,
			   struct sol_reservation *want)
{
	bool has;

	mutex_lock(&guard_mutex);
	has = regulated(cpu);
	if (has) {
		*owner = sol_guard.core[cpu].owner;
		*want = rules_of(cpu)->want;
	}
	mutex_unlock(&guard_mutex);
	return has;
}

int sol_guard_may_recolor(const struct sol_group *group)
{
	int cpu, err = 0;

	mutex_lock(&guard_mutex);
	for_each_possible_cpu(cpu)
		if (sol_guard.set.by_bank && sol_guard.core[cpu].owner == group)
			err = sol_deny(-EBUSY,
				       "group %s has bandwidth by bank; take that off (bandwidth) before its colours change",
				       group->name);
	mutex_unlock(&guard_mutex);
	return err;
}

/* ---- Reading ---- */

bool sol_guard_core_stats(int cpu, struct sol_guard_core_stats *stats)
{
	const struct sol_guard_core *core = &sol_guard.core[cpu];

	memset(stats, 0, sizeof(*stats));
	mutex_lock(&guard_mutex);
	raw_spin_lock_irq(&sol_guard.lock);
	stats->regulated = regulated(cpu);
	stats->ready = core->ready;
	stats->stopped = core->stop;
	stats->stopped_ns = core->stopped_ns;
	if (core->stop)
		stats->stopped_ns += ktime_get_ns() - core->stopped_at;
	stats->overflows = core->overflows;
	stats->interrupts = core->interrupts;
	stats->failed = core->failed;
	stats->line = sol_guard.set.rules.line;
	stats->rules = core->before;
	if (sol_guard.reg) {
		const struct sol_core *c = rules_of(cpu);
		int i;

		stats_add(&stats->rules, &c->stats, stats->line);
		for (i = 0; i < SOL_TRAFFICS; i++)
			stats->reserved[i] = stats->regulated ?
					     c->meter[i].reserved : 0;
	}
	raw_spin_unlock_irq(&sol_guard.lock);
	mutex_unlock(&guard_mutex);
	return stats->regulated;
}

/* ---- Load and unload ---- */

int sol_guard_init(void)
{
	int cpu;

	unable = sol_guard_fair_init();
	sol_guard.core = kvcalloc(nr_cpu_ids, sizeof(*sol_guard.core),
				  GFP_KERNEL);
	if (!sol_guard.core)
		return -ENOMEM;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		sol_guard.core[cpu].cpu = cpu;
		sol_guard.core[cpu].gone = true;
		sol_guard_core_init(&sol_guard.core[cpu]);
	}
	sol_guard_period_init();
	INIT_WORK(&sol_guard.reconcile, hotplug_fn);
	/* This calls guard_online() for those that are. */
	hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "soloist:guard",
					  guard_online, guard_offline);
	if (hotplug_state < 0) {
		kvfree(sol_guard.core);
		return hotplug_state;
	}
	return 0;
}

void sol_guard_exit(void)
{
	/* First, for a CPU that goes offline leaves only as long as it is told. */
	mutex_lock(&guard_mutex);
	regulator_swap(NULL, &sol_guard.set);
	sol_guard_hold_end();
	mutex_unlock(&guard_mutex);
	cpuhp_remove_state_nocalls(hotplug_state);
	/* Its threads are gone; what they had queued finds nobody regulated. */
	cancel_work_sync(&sol_guard.reconcile);
	kvfree(sol_guard.core);
}
