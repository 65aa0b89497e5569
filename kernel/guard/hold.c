// SPDX-License-Identifier: GPL-2.0
/*
 * Holding the tasks of a stopped CPU where they return to user space (`stop user`).
 *
 * If a CPU stands still (cores.c), tasks that need a lock which the stopped task holds
 * in the kernel wait. Here the CPU goes on, and each of its tasks is held when it
 * leaves the kernel, where it holds none of the kernel's locks. Traffic until then, and
 * traffic of kernel threads, is beyond the budget: it is counted and not stopped.
 *
 * A task does work on its way to user space if it is told that there is some
 * (TIF_NOTIFY_RESUME). We tell the task that runs when the CPU is stopped, and each
 * task that the CPU switches to until it goes on. Part of that work is a call of
 * blkcg_maybe_throttle_current(), which may sleep and holds no lock; a hook there
 * makes the task sleep until its CPU goes on. A task that is told and never comes
 * there, since it sleeps in the kernel, delays nobody, nor unloading.
 *
 * Differs from the paper, whose throttling thread stops a task wherever it is.
 *
 * Locking: begins and ends under sol_guard_mutex. Held tasks sleep in a section of
 * sol_waiting, for as long as a CPU may be stopped. On PREEMPT_RT interrupts can't
 * wake a list of tasks, so that a thread of the CPU does.
 */
#include <linux/kthread.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "../compat/trampoline.h"
#include "../hook/probe.h"
#include "../command/status.h"
#include "../hook/hook.h"
#include "hold.h"
#include "state.h"

#define SLEEP	(TASK_KILLABLE | TASK_NOLOAD)	/* no load: it must not run */

static bool holding;	/* sol_guard_mutex */

/* The CPU that this runs on, if it holds its tasks; or NULL. */
static struct sol_guard_core *holding_core(void)
{
	struct sol_guard_core *core = &sol_guard.core[raw_smp_processor_id()];

	return READ_ONCE(core->holds) ? core : NULL;
}

/* blkcg_maybe_throttle_current(): a task returns to user space. */
unsigned long sol_guard_going_out(void)
{
	struct sol_guard_core *core;
	int waiting;

	if (!holding_core())
		return SOL_PASS;
	waiting = srcu_read_lock(&sol_waiting);
	while (!fatal_signal_pending(current) && (core = holding_core()))
		wait_event_state(core->held, !READ_ONCE(core->holds), SLEEP);
	srcu_read_unlock(&sol_waiting, waiting);
	return SOL_PASS;
}

SOL_TRAMPOLINE(sol_enter_going_out, sol_guard_going_out, SOL_IF_ANY);

static struct sol_hook hooks[] = {
	SOL_HOOK("blkcg_maybe_throttle_current", sol_enter_going_out),
};

static void tell(struct task_struct *task)
{
	if (!(task->flags & PF_KTHREAD))
		set_notify_resume(task);
}

/* Under the run queue's lock. @next is to run here. */
static void probe_switch(void *data, bool preempt, struct task_struct *prev,
			 struct task_struct *next)
{
	if (holding_core())
		tell(next);
}

static struct sol_probe probes[] = {
	{ "sched_switch", probe_switch },
};

void sol_guard_hold_current(void)
{
	tell(current);
}

int sol_guard_hold_begin(void)
{
	int err;

	if (holding)
		return 0;
	err = sol_hooks_attach(hooks, ARRAY_SIZE(hooks));
	if (!err) {
		err = sol_probes_add(probes, ARRAY_SIZE(probes));
		if (err)
			sol_hooks_detach(hooks, ARRAY_SIZE(hooks));
	}
	if (err)
		return sol_deny(-EOPNOTSUPP,
				"settings: stop user: this kernel lets no task be held on its way to user space; the kernel log says why");
	holding = true;
	return 0;
}

/* No CPU is stopped any more. */
void sol_guard_hold_end(void)
{
	if (!holding)
		return;
	sol_probes_remove(probes, ARRAY_SIZE(probes));
	sol_hooks_detach(hooks, ARRAY_SIZE(hooks));
	holding = false;
}

int sol_guard_release_fn(void *data)
{
	struct sol_guard_core *core = data;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!xchg(&core->release, false)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		wake_up_all(&core->held);
	}
	__set_current_state(TASK_RUNNING);
	wake_up_all(&core->held);
	return 0;
}
