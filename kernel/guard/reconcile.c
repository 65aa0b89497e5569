// SPDX-License-Identifier: GPL-2.0
/*
 * Reconciling: a CPU has counters and a thread that stands still if it has a
 * reservation and is online, and else it has none.
 *
 * Locking: sol_guard_mutex; state.h.
 */
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

void sol_guard_reconcile(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		core_reconcile(&sol_guard.core[cpu]);
	sol_guard_period_move();
}

void sol_guard_all_down(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (sol_guard.core[cpu].stop_thread)
			sol_guard_core_down(&sol_guard.core[cpu]);
	sol_guard_period_move();
}
