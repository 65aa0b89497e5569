// SPDX-License-Identifier: GPL-2.0
/*
 * Reservations of groups and of CPUs.
 *
 * A change is planned for all CPUs at once, and tried on a regulator that nobody uses,
 * for that takes long on a machine of many CPUs. With interrupts off, a plan that fits is
 * only put in place. If a CPU can't be regulated then, the reservations before it are
 * put back.
 *
 * Locking: state.h.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../group/group.h"
#include "guard.h"
#include "plans.h"

/* ---- Making them ---- */

static int check_owners(const struct sol_group *owner,
			const struct cpumask *cpus)
{
	int cpu;

	for_each_cpu(cpu, cpus) {
		const struct sol_group *other = sol_guard.core[cpu].owner;

		if (!sol_guard_regulated(cpu) || other == owner)
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

/* Do the reservations @p fit? An errno and words if not. */
static int plans_fit(const struct sol_plans *p)
{
	struct sol_regulator *scratch;
	struct sol_err why;
	int err;

	scratch = sol_guard_regulator_alloc(&sol_guard.set);
	if (IS_ERR(scratch))
		return PTR_ERR(scratch);
	err = sol_plans_try(p, scratch, &why);
	sol_guard_regulator_free(scratch);
	return err ? sol_deny(err, "bandwidth: %s", why.text) : 0;
}

/* Put @p, which fits, in place. */
static void plans_put(const struct sol_plans *p)
{
	int cpu;

	raw_spin_lock_irq(&sol_guard.lock);
	sol_plans_put(p, sol_guard.reg);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		sol_guard.core[cpu].owner = p->owner[cpu];
	raw_spin_unlock_irq(&sol_guard.lock);
	sol_guard_reconcile();
}

/* Can one of @cpus not be regulated? An errno and words. Others are not its matter. */
static int trouble(const struct cpumask *cpus)
{
	int cpu, err = 0;

	for_each_cpu(cpu, cpus) {
		err = sol_guard_trouble("bandwidth:", cpu);
		if (err)
			break;
	}
	return err;
}

/* Does this machine count what is set? Whoever sets another event has it tried. */
static int counted(struct sol_guard_set *set)
{
	int i, err = 0;

	for (i = 0; !err && !set->counted && i < SOL_TRAFFICS; i++)
		if (*set->name[i])
			err = sol_event_check(set->name[i], &set->event[i]);
	set->counted = !err;
	return err;
}

static int reserve(struct sol_group *owner, const struct cpumask *cpus,
		   const struct sol_reservation *want)
{
	struct sol_plans old, new;
	int cpu, err = want ? counted(&sol_guard.set) : 0;

	if (err)
		return err;
	err = sol_plans_take(&old);
	if (err)
		return err;
	err = sol_plans_take(&new);
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
	err = sol_guard_pools(&sol_guard.set, old.owner, old.pools) ?:
	      sol_guard_pools(&sol_guard.set, new.owner, new.pools) ?:
	      plans_fit(&new);
	if (!err) {
		plans_put(&new);
		err = want ? trouble(cpus) : 0;
		if (err)
			plans_put(&old);
	}
	sol_plans_free(&new);
out_old:
	sol_plans_free(&old);
	return err;
}

int sol_guard_reserve(struct sol_group *owner, const struct cpumask *cpus,
		      const struct sol_reservation *want)
{
	int err = 0;

	mutex_lock(&sol_guard_mutex);
	/* A removal marks the group first. Then it takes this mutex, and disowns. */
	if (want && owner)
		err = sol_group_check_living(owner);
	if (!err && want && !sol_guard.reg)
		err = sol_deny(-ENXIO,
			       "bandwidth: r_min is not set; `soloist guard rmin` tells how much, `soloist guard set --r-min RATE` sets it (r_min in guard/settings)");
	if (!err && want)
		err = sol_guard_check_stop(&sol_guard.set) ?:
		      sol_guard_check_clock("bandwidth:", &sol_guard.set, want);
	if (!err && cpus)
		err = check_owners(owner, cpus);
	if (!err && sol_guard.reg)
		err = reserve(owner, cpus, want);
	mutex_unlock(&sol_guard_mutex);
	return err;
}

/*
 * The pools are not computed anew, so that no memory is needed: these CPUs have no
 * reservation now, and the next reservation computes them.
 */
void sol_guard_disown(struct sol_group *owner)
{
	int cpu;

	mutex_lock(&sol_guard_mutex);
	for_each_possible_cpu(cpu) {
		if (sol_guard.core[cpu].owner != owner)
			continue;
		raw_spin_lock_irq(&sol_guard.lock);
		if (sol_guard.reg)
			sol_regulator_reserve(sol_guard.reg, cpu, NULL, NULL);
		sol_guard.core[cpu].owner = NULL;
		raw_spin_unlock_irq(&sol_guard.lock);
	}
	sol_guard_reconcile();
	mutex_unlock(&sol_guard_mutex);
}

/*
 * ---- Reading them ----
 *
 * Any user may, also on a CPU that is stopped with what it holds. So readers take only
 * the lock, under which nobody is stopped.
 */

bool sol_guard_reserved(const struct sol_group *owner, struct cpumask *cpus,
			struct sol_reservation *want)
{
	bool any = false;
	int cpu;

	cpumask_clear(cpus);
	for_each_possible_cpu(cpu) {
		/* For each: whoever reads must not keep periods from beginning. */
		raw_spin_lock_irq(&sol_guard.lock);
		if (sol_guard_regulated(cpu) && sol_guard.core[cpu].owner == owner) {
			cpumask_set_cpu(cpu, cpus);
			*want = sol_guard_rules(cpu)->want;
			any = true;
		}
		raw_spin_unlock_irq(&sol_guard.lock);
	}
	return any;
}

bool sol_guard_reserved_on(int cpu, char *owner, size_t size,
			   struct sol_reservation *want)
{
	bool has;

	*owner = '\0';
	raw_spin_lock_irq(&sol_guard.lock);
	has = sol_guard_regulated(cpu);
	if (has) {
		*want = sol_guard_rules(cpu)->want;
		/* It is there: whoever removes a group takes its CPUs first. */
		if (sol_guard.core[cpu].owner)
			strscpy(owner, sol_guard.core[cpu].owner->name, size);
	}
	raw_spin_unlock_irq(&sol_guard.lock);
	return has;
}

/* ---- Asked by other rooms ---- */

int sol_guard_recolor_begin(struct sol_group *group)
{
	int cpu, err = 0;

	mutex_lock(&sol_guard_mutex);
	for_each_possible_cpu(cpu)
		if (sol_guard.set.by_bank && sol_guard.core[cpu].owner == group)
			err = sol_deny(-EBUSY,
				       "group %s has bandwidth by bank; take that off (bandwidth) before its pages may get other colours",
				       group->name);
	if (!err)
		group->recolorers++;
	mutex_unlock(&sol_guard_mutex);
	return err;
}

void sol_guard_recolor_end(struct sol_group *group)
{
	mutex_lock(&sol_guard_mutex);
	group->recolorers--;
	mutex_unlock(&sol_guard_mutex);
}
