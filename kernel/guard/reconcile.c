// SPDX-License-Identifier: GPL-2.0
/*
 * Reconciling: a CPU has counters and a thread that stands still if it has a
 * reservation and is online, and else it has none. Work items try again what failed.
 *
 * Locking: sol_guard_mutex; state.h.
 */
#include <linux/jiffies.h>

#include "../command/status.h"
#include "../compat/workqueue.h"
#include "cores.h"
#include "guard.h"
#include "period.h"

static void core_reconcile(struct sol_guard_core *core)
{
	bool want = sol_guard_regulated(core->cpu) && !READ_ONCE(core->gone);

	if (core->stop_thread && (READ_ONCE(core->stale) || !want))
		sol_guard_core_down(core);
	core->trouble = 0;
	if (want && !core->stop_thread)
		core->trouble = sol_guard_core_up(core);
}

bool sol_guard_may_pass(int err)
{
	switch (err) {
	case -EINTR:
	case -ENOMEM:
	case -EAGAIN:
	case -EBUSY:
	case -ENOSPC:
		return true;
	default:
		return false;
	}
}

/*
 * A CPU that has a reservation and could not be made ready runs without limit: try
 * again. At once if a signal has ended the try, for a work item gets none: a thread
 * can't be made for a writer that is being killed.
 */
static void retry(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct sol_guard_core *core = &sol_guard.core[cpu];

		if (READ_ONCE(core->gone) || !sol_guard_may_pass(core->trouble))
			continue;
		if (core->trouble == -EINTR)
			schedule_work(&sol_guard.reconcile);
		else
			queue_delayed_work(sol_unbound_wq(), &sol_guard.retry, HZ);
	}
}

void sol_guard_reconcile(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		core_reconcile(&sol_guard.core[cpu]);
	sol_guard_period_move();
	retry();
}

/* Part of a sentence. */
static const char *no_thread(int err)
{
	switch (err) {
	case -EINTR:
		return "the command was killed";
	case -EAGAIN:
		return "there are too many threads (kernel.threads-max)";
	case -ENOMEM:
		return "no memory";
	default:
		return "the scheduler refused it";
	}
}

int sol_guard_trouble(const char *what, int cpu)
{
	const struct sol_guard_core *core = &sol_guard.core[cpu];

	if (!core->trouble || READ_ONCE(core->gone))
		return 0;
	switch (core->step) {
	case SOL_STEP_THREAD:
		return sol_deny(core->trouble,
				"%s CPU %d can't be regulated: the kernel made no thread that stops it: %s",
				what, cpu, no_thread(core->trouble));
	case SOL_STEP_ENTER:
		return sol_deny(core->trouble,
				"%s CPU %d can't be regulated: it goes offline",
				what, cpu);
	default:
		return sol_deny(core->trouble,
				"%s CPU %d can't be regulated: event %s: %s",
				what, cpu, sol_guard.set.name[core->step],
				sol_counter_why(core->trouble));
	}
}

void sol_guard_all_down(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (sol_guard.core[cpu].stop_thread)
			sol_guard_core_down(&sol_guard.core[cpu]);
	sol_guard_period_move();
}
