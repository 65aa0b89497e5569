// SPDX-License-Identifier: GPL-2.0
/*
 * Periods: one timer, on one CPU, begins them for all (figure 4, lines 1-5).
 *
 * It is the first CPU with a reservation, and it interrupts only CPUs that have one.
 * CPUs that were isolated, or that have no limit, get no interrupt from us. The timer
 * expires in hard interrupt context, on PREEMPT_RT too. Its loop over CPUs consists of
 * the regulator's work and the calls.
 *
 * Differs from the paper, where Core0 is always the master.
 *
 * Locking: state.h. The timer moves when its CPU goes offline, in a hotplug callback;
 * hence a mutex under which nothing waits for hotplug.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>

#include "../compat/timer.h"
#include "cores.h"
#include "period.h"
#include "state.h"

static DEFINE_MUTEX(guard_timer_mutex);

static bool guard_stall;
module_param(guard_stall, bool, 0600);
MODULE_PARM_DESC(guard_stall, "for tests: periods no longer begin, as if the timer had stopped");

static void begin_all(int self)
{
	int cpu;

	sol_regulator_begin(sol_guard.reg);
	sol_guard.begun_at = ktime_get_ns();
	sol_guard.periods++;
	sol_guard.postponed = 0;
	sol_guard.postpone = false;
	sol_guard.stalled = false;
	for_each_cpu(cpu, &sol_guard.ready)
		if (cpu != self)
			sol_guard_core_call(&sol_guard.core[cpu]);
}

static enum hrtimer_restart timer_fn(struct hrtimer *timer)
{
	int self = smp_processor_id();
	unsigned long flags;
	u64 missed;

	if (READ_ONCE(guard_stall))
		goto out;
	raw_spin_lock_irqsave(&sol_guard.lock, flags);
	begin_all(self);
	raw_spin_unlock_irqrestore(&sol_guard.lock, flags);
	if (cpumask_test_cpu(self, &sol_guard.ready)) {
		local_irq_save(flags);
		sol_guard_core_sync(&sol_guard.core[self]);
		local_irq_restore(flags);
	}
out:
	missed = hrtimer_forward_now(timer, ns_to_ktime(sol_guard_period_ns()));
	sol_guard.late += missed - 1;
	return HRTIMER_RESTART;
}

static void timer_start(void *unused)
{
	hrtimer_start(&sol_guard.timer, ns_to_ktime(sol_guard_period_ns()),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

void sol_guard_period_move(void)
{
	unsigned long flags;
	bool moves;
	int master;

	mutex_lock(&guard_timer_mutex);
	raw_spin_lock_irqsave(&sol_guard.lock, flags);
	master = cpumask_first(&sol_guard.ready);
	if (master >= nr_cpu_ids)
		master = -1;
	moves = master != sol_guard.master;
	/* Nobody postpones it, and so starts it, once it is cancelled. */
	if (moves)
		sol_guard.master = -1;
	raw_spin_unlock_irqrestore(&sol_guard.lock, flags);
	if (moves) {
		hrtimer_cancel(&sol_guard.timer);
		sol_guard.begun_at = ktime_get_ns();
		if (master >= 0 &&
		    smp_call_function_single(master, timer_start, NULL, true))
			master = -1;	/* offline by now: moved again soon */
		sol_guard.master = master;
	}
	mutex_unlock(&guard_timer_mutex);
}

void sol_guard_period_init(void)
{
	sol_timer_init(&sol_guard.timer, timer_fn, HRTIMER_MODE_REL_PINNED_HARD);
	sol_guard.master = -1;
}
