/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of the guard: settings, CPUs, and the lock.
 *
 * Locking, from outer to inner:
 *   sol_guard_mutex       settings, reservations, who owns a CPU, readiness: to change
 *                         them; never held by a hotplug callback, since making a perf
 *                         event takes the hotplug lock, nor by a reader, who may be of
 *                         any user and on a stopped CPU
 *   guard_timer_mutex     where the timer runs
 *   sol_guard.lock        raw, interrupts off: the regulator and all that
 *                         interrupts and readers look at. Wakes threads and sends
 *                         interrupts to other CPUs, takes no further lock of ours
 */
#ifndef SOLOIST_GUARD_STATE_H
#define SOLOIST_GUARD_STATE_H

#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../../core/regulator/regulator.h"
#include "counter.h"
#include "fair.h"

struct sol_group;

/**
 * struct sol_guard_set - settings
 * @rules: the regulator's; r_min is 0 until it is set, and nothing can be reserved
 * @name: names of the events by kind of traffic; "" for SOL_WRITES: not counted
 * @event: the events themselves
 * @counted: this machine counts them: a fresh module's default was never tried
 * @kernel: events of the kernel count too
 * @per_task: a CPU's weight is the priority of the task that runs on it
 * @by_bank: CPUs of groups that share no bank set are regulated apart
 * @hold: a stopped CPU goes on, and holds its tasks on their way to user space
 */
struct sol_guard_set {
	struct sol_regulation rules;
	char name[SOL_TRAFFICS][SOL_EVENT_NAME];
	struct sol_event event[SOL_TRAFFICS];
	bool counted;
	bool kernel;
	bool per_task;
	bool by_bank;
	bool hold;
};

/**
 * enum sol_guard_step - what makes a CPU ready, after a counter for each enum sol_traffic
 * @SOL_STEP_THREAD: the thread that stands still
 * @SOL_STEP_ENTER: the CPU itself takes part
 */
enum sol_guard_step { SOL_STEP_THREAD = SOL_TRAFFICS, SOL_STEP_ENTER };

/**
 * struct sol_guard_core - one CPU
 * @cpu: which
 * @ready: counters and thread are there
 * @gone: the CPU is offline or about to be. Written by hotplug callbacks
 * @stale: it was, or nearly was, offline since it was made ready
 * @trouble: errno of the last try to make it ready. sol_guard_mutex
 * @step: enum sol_guard_step where it failed
 * @owner: group whose reservation it is, NULL: its own. Changes under sol_guard_mutex and
 *	the lock, so that either will do to look
 * @counter: by kind, NULL: not counted
 * @base: where they stood when the period began
 * @stop_thread: thread that stands still, or wakes @held
 * @stop: the CPU is stopped. Written under the lock, on the CPU itself
 * @holds: so are its tasks, in place of the CPU. Not @stop with ->hold, for the hook
 *	is there a while before and after ->hold is set
 * @held: tasks that wait until the CPU goes on, with @holds
 * @release: @stop_thread shall wake @held
 * @fair: the CPU's fair server
 * @overflowed: a counter came to its limit
 * @call: begin a period or look at @stop again
 * @watchdog: lets the CPU go if no period begins
 * @stopped_at: nanoseconds, while @stop
 * @stopped_ns: in all
 * @weight: of the task that ran last, for per-task mode
 * @busy: something ran when the CPU was stopped
 * @overflows: interrupts by its counters
 * @interrupts: interrupts by the timer and by other CPUs
 * @failed: times that a counter was found not to count
 * @before: what regulators counted before this one, in bytes
 */
struct sol_guard_core {
	int cpu;
	bool ready;
	bool gone;
	bool stale;
	int trouble;
	u8 step;
	struct sol_group *owner;
	struct perf_event *counter[SOL_TRAFFICS];
	u64 base[SOL_TRAFFICS];
	struct task_struct *stop_thread;
	bool stop;
	bool holds;
	wait_queue_head_t held;
	bool release;
	struct sol_guard_fair fair;
	struct irq_work overflowed;
	call_single_data_t call;
	struct hrtimer watchdog;
	u64 stopped_at;
	u64 stopped_ns;
	u32 weight;
	bool busy;
	u64 overflows;
	u64 interrupts;
	u64 failed;
	struct sol_core_stats before;
};

/**
 * struct sol_guard - the whole
 * @lock: see above
 * @reg: NULL as long as r_min is not set
 * @core: by CPU number
 * @ready: CPUs that take part
 * @set: settings. They change under sol_guard_mutex and the lock
 * @timer: begins periods
 * @master: CPU that it runs on, -1: stopped. guard_timer_mutex
 * @reconcile: after hotplug: CPUs have what they need, and no others
 * @retry: the same a second after a CPU could not be made ready
 * @begun_at: nanoseconds, the last period that the timer began, or that moved the timer
 * @restarted_at: nanoseconds, by domain: the last period that began for it alone
 * @postpone: the timer is to count from now
 * @postponed: how often it has been since it last expired
 * @stalled: no period began for too long: nobody is stopped until one does
 * @periods: how many began; this and the counts below are in docs/reference/interface.md
 * @late: periods that were missed
 * @restarts: periods that proportional sharing began early
 * @refused: restarts that came too often
 * @stalls: times that no period began for too long
 */
struct sol_guard {
	raw_spinlock_t lock;
	struct sol_regulator *reg;
	struct sol_guard_core *core;
	struct cpumask ready;
	struct sol_guard_set set;
	struct hrtimer timer;
	int master;
	struct work_struct reconcile;
	struct delayed_work retry;
	u64 begun_at;
	u64 restarted_at[SOL_POOLS];
	u32 postponed;
	bool postpone;
	bool stalled;
	u64 periods;
	u64 late;
	u64 restarts;
	u64 refused;
	u64 stalls;
};

extern struct sol_guard sol_guard;
extern struct mutex sol_guard_mutex;

/* errno: this kernel lacks what stopping a CPU needs; the kernel log says what. */
extern int sol_guard_unable;

static inline struct sol_core *sol_guard_rules(int cpu)
{
	return &sol_guard.reg->core[cpu];
}

/* Has @cpu a reservation? sol_guard_mutex or the lock. */
static inline bool sol_guard_regulated(int cpu)
{
	return sol_guard.reg && sol_guard_rules(cpu)->regulated;
}

static inline u64 sol_guard_period_ns(void)
{
	return (u64)sol_guard.set.rules.period * NSEC_PER_USEC;
}

/* How long no period may begin until CPUs are let go, in ns. */
static inline u64 sol_guard_patience_ns(void)
{
	return 4 * sol_guard_period_ns() + 10 * NSEC_PER_MSEC;
}

#endif /* SOLOIST_GUARD_STATE_H */
