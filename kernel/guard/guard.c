// SPDX-License-Identifier: GPL-2.0
/*
 * The guard: which CPUs are regulated, and what they have counted.
 *
 * As long as no CPU has a reservation, nothing is counted and nobody interrupted. A
 * CPU with a reservation has counters, a thread that stands still, and calls at the
 * beginning of each period. The first such CPU starts the timer, the last stops it.
 *
 * CPU hotplug: a CPU that goes offline keeps its reservation and leaves at once, in
 * the callback. A work item frees what it had, and makes the CPU ready when it comes
 * back, since making a perf event takes the lock that callbacks run under. Another one
 * tries again if that failed.
 *
 * Locking: state.h.
 */
#include <linux/cpuhotplug.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "cores.h"
#include "guard.h"
#include "hold.h"
#include "period.h"

static int hotplug_state;

/* ---- CPUs come and go ---- */

static void reconcile_fn(struct work_struct *work)
{
	mutex_lock(&sol_guard_mutex);
	sol_guard_reconcile();
	mutex_unlock(&sol_guard_mutex);
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

/* ---- Reading ---- */

bool sol_guard_core_stats(int cpu, struct sol_guard_core_stats *stats)
{
	const struct sol_guard_core *core = &sol_guard.core[cpu];

	memset(stats, 0, sizeof(*stats));
	raw_spin_lock_irq(&sol_guard.lock);
	stats->regulated = sol_guard_regulated(cpu);
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
		const struct sol_core *c = sol_guard_rules(cpu);
		int i;

		sol_guard_stats_add(&stats->rules, &c->stats, stats->line);
		for (i = 0; i < SOL_TRAFFICS; i++)
			stats->reserved[i] = stats->regulated ?
					     c->meter[i].reserved : 0;
	}
	raw_spin_unlock_irq(&sol_guard.lock);
	return stats->regulated;
}

/* ---- Load and unload ---- */

int sol_guard_init(void)
{
	int cpu;

	sol_guard_unable = sol_guard_fair_init();
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
	INIT_WORK(&sol_guard.reconcile, reconcile_fn);
	INIT_DELAYED_WORK(&sol_guard.retry, reconcile_fn);
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
	/* First: a CPU that goes offline leaves only while callbacks are there. */
	mutex_lock(&sol_guard_mutex);
	sol_guard_swap(NULL, &sol_guard.set);
	sol_guard_hold_end();
	mutex_unlock(&sol_guard_mutex);
	cpuhp_remove_state_nocalls(hotplug_state);
	/* The threads are gone; a queued work finds no CPU regulated, and queues none. */
	cancel_work_sync(&sol_guard.reconcile);
	cancel_delayed_work_sync(&sol_guard.retry);
	kvfree(sol_guard.core);
}
