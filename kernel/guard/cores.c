// SPDX-License-Identifier: GPL-2.0
/*
 * One CPU under regulation.
 *
 * Three events concern it, all with interrupts off. A period begins: the timer's CPU
 * calls. A counter overflows, perhaps in an NMI, so that an irq_work carries it on.
 * An overflow on another CPU lets this one go: a call again. Each event informs the
 * regulator, arms the counters anew, and stops the CPU or lets it go. A call has no
 * message: the CPU asks the regulator for the present state, so that one call that is
 * under way is enough for two events.
 *
 * Standing still: a thread that preempts all but the stop class (compat/stop.h) halts
 * the CPU until the period ends. A FIFO thread, as in the paper, would not be enough:
 * deadline tasks preempt it, real-time throttling ends it after 95 % of a second, and
 * the fair server (6.12 on) runs others for 5 %. Interrupts are served; their traffic
 * is counted and not stopped, and so is that of the stop class. Kernel threads of the
 * CPU wait. So do tasks that need a lock of a stopped task, until that task has had
 * the periods that it needs to release it: one more than it fills by its own traffic,
 * or any number if others of its CPU use up the budgets. A task that holds a spinlock
 * is never stopped, except on PREEMPT_RT. A task in the kernel stops where it can be
 * preempted: with voluntary preemption, it finishes a stretch of its system call.
 *
 * With `stop user` the CPU does not stand still; see hold.c.
 *
 * Locking: state.h.
 */
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched/prio.h>

#include "../compat/stop.h"
#include "../compat/timer.h"
#include "../compat/workqueue.h"
#include "../trace/trace.h"
#include "cores.h"
#include "hold.h"
#include "state.h"

/* Periods in a row that proportional sharing may begin; see postpone(). */
#define MAX_POSTPONED	16

static struct sol_core *rules_of(const struct sol_guard_core *core)
{
	return &sol_guard.reg->core[core->cpu];
}

/* ---- Standing still ---- */

/*
 * Does the thread run on another CPU? A thread that is merely bound is moved as soon
 * as its CPU is about to go offline, which may be called off. A true per-CPU thread
 * must not wake while its CPU goes, which we can't know.
 */
static bool astray(const struct sol_guard_core *core)
{
	return raw_smp_processor_id() != core->cpu;
}

static bool must_stand(const struct sol_guard_core *core)
{
	return READ_ONCE(core->stop) && !astray(core);
}

static void stand_still(struct sol_guard_core *core)
{
	while (must_stand(core) && !kthread_should_stop()) {
		local_irq_disable();
		if (must_stand(core) && !need_resched())
			sol_wait_for_interrupt();
		else
			local_irq_enable();
		if (need_resched())
			schedule();
	}
}

static int stand_still_fn(void *data)
{
	struct sol_guard_core *core = data;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!must_stand(core))
			schedule();
		__set_current_state(TASK_RUNNING);
		stand_still(core);
		if (astray(core)) {
			WRITE_ONCE(core->stale, true);
			schedule_work(&sol_guard.reconcile);
		} else {
			sol_guard_fair_goes_on(&core->fair,
					       READ_ONCE(core->stopped_ns));
		}
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int stop_thread_new(struct sol_guard_core *core)
{
	struct task_struct *stop_thread;
	int err;

	core->step = SOL_STEP_THREAD;
	stop_thread = kthread_create_on_node(sol_guard.set.hold ?
					     sol_guard_release_fn : stand_still_fn,
					     core, cpu_to_node(core->cpu),
					     "soloist/%d", core->cpu);
	if (IS_ERR(stop_thread))
		return PTR_ERR(stop_thread);
	kthread_bind(stop_thread, core->cpu);
	err = sol_outrank(stop_thread);
	if (err) {
		kthread_stop(stop_thread);
		return err;
	}
	wake_up_process(stop_thread);
	core->stop_thread = stop_thread;
	return 0;
}

/* Weight in per-task mode: the scheduler's; real-time tasks have more than all others. */
static u32 weight_of(const struct task_struct *task)
{
	if (task->prio < MAX_RT_PRIO)
		return 100000 + 1000 * (MAX_RT_PRIO - 1 - max(task->prio, 0));
	return max_t(u32, task->se.load.weight >> SCHED_FIXEDPOINT_SHIFT, 1);
}

/*
 * Note what runs. On a stopped CPU that is the thread that stands still, which says nothing
 * about its tasks: the CPU counts as busy. An interrupt on an idle CPU may have used up the
 * budget; counted as idle from then on, the CPU would have one line in each period, for
 * interrupts again. With @holds the CPU goes on, and is busy if a task is held.
 */
static void look_around(struct sol_guard_core *core)
{
	if (current == core->stop_thread) {
		core->busy = true;
		return;
	}
	if (core->holds) {
		/* No barrier: a task that comes just now is seen the next time. */
		core->busy |= waitqueue_active(&core->held);
		return;
	}
	core->busy = !is_idle_task(current);
	if (core->busy)
		core->weight = weight_of(current);
}

/* Stop the CPU that runs this, or let it go. */
static void set_stop(struct sol_guard_core *core, bool stop)
{
	u64 now;

	if (core->stop == stop)
		return;
	now = ktime_get_ns();
	if (stop) {
		core->stopped_at = now;
		trace_soloist_cpu_stop(core->cpu);
		sol_guard_fair_stops(&core->fair);
	} else {
		core->stopped_ns += now - core->stopped_at;
		trace_soloist_cpu_go(core->cpu, now - core->stopped_at);
	}
	WRITE_ONCE(core->stop, stop);
	WRITE_ONCE(core->holds, stop && sol_guard.set.hold);
	if (core->holds)
		sol_guard_hold_current();
	WRITE_ONCE(core->release, !stop);
	if (stop != sol_guard.set.hold)
		wake_up_process(core->stop_thread);
}

/* ---- Counters ---- */

/*
 * A counter that lost its place never gets it back: perf gives up what is pinned and does
 * not fit. So it is made anew, or tried each second.
 */
static void lost_counter(struct sol_guard_core *core)
{
	core->failed++;
	if (!core->ready || core->stale)
		return;
	WRITE_ONCE(core->stale, true);
	/* Not on this CPU, where real-time tasks may be. */
	queue_work(sol_unbound_wq(), &sol_guard.reconcile);
}

/* Counts of this period so far. */
static void read_used(struct sol_guard_core *core, u32 *used)
{
	bool works = true;
	int i;

	for (i = 0; i < SOL_TRAFFICS; i++) {
		struct perf_event *counter = core->counter[i];
		u64 n;

		used[i] = 0;
		if (!counter)
			continue;
		works &= sol_counter_works(counter);
		n = sol_counter_read(counter) - core->base[i];
		used[i] = min_t(u64, n, U32_MAX - 1);
	}
	if (!works)
		lost_counter(core);
}

static void arm(struct sol_guard_core *core, const struct sol_answer *answer)
{
	int i;

	for (i = 0; i < SOL_TRAFFICS; i++) {
		if (!core->counter[i])
			continue;
		sol_counter_arm(core->counter[i],
				answer->limit[i] == SOL_NO_LIMIT ?
				SOL_COUNT_NEVER :
				core->base[i] + answer->limit[i]);
	}
}

static void disarm(struct sol_guard_core *core)
{
	int i;

	for (i = 0; i < SOL_TRAFFICS; i++)
		if (core->counter[i])
			sol_counter_arm(core->counter[i], SOL_COUNT_NEVER);
}

/* ---- Under the lock: what the regulator answered ---- */

/* Call all CPUs of a domain but @self. */
static void call_domain(const struct sol_guard_core *self, u32 domain,
			bool only_stopped)
{
	int cpu;

	for_each_cpu(cpu, &sol_guard.ready) {
		struct sol_guard_core *core = &sol_guard.core[cpu];

		if (core == self || rules_of(core)->domain != domain)
			continue;
		if (only_stopped && !READ_ONCE(core->stop))
			continue;
		sol_guard_core_call(core);
	}
}

/*
 * Begin a period for a domain at once, but not again within 1/64 of a period: that
 * would be more interrupts than work, and no memory is so fast.
 *
 * With several domains the timer stays as it is, for it begins the periods of the others
 * too. So does what the watchdog looks at: a domain that restarts says nothing about the
 * timer.
 */
static bool restart(const struct sol_guard_core *self, u32 domain)
{
	u64 now = ktime_get_ns();
	u64 last = max(sol_guard.begun_at, sol_guard.restarted_at[domain]);

	if (now - last < sol_guard_period_ns() / 64) {
		sol_guard.refused++;
		return false;
	}
	sol_guard.restarted_at[domain] = now;
	sol_guard.restarts++;
	if (!sol_guard.set.by_bank && sol_guard.postponed < MAX_POSTPONED) {
		sol_guard.postpone = true;
		sol_guard.begun_at = now;
	}
	sol_regulator_restart(sol_guard.reg, domain);
	call_domain(self, domain, false);
	return true;
}

static void begin(struct sol_guard_core *core);

static void obey(struct sol_guard_core *core, const struct sol_answer *answer)
{
	if (answer->order == SOL_FREE)
		call_domain(core, answer->domain, true);
	else if (answer->order == SOL_RESTART &&
		 restart(core, answer->domain) && core->ready)
		begin(core);
}

/*
 * A period has begun. It may end at once if this CPU was the last one with a budget.
 * The next one does not, for all other CPUs have yet to begin it.
 */
static void begin(struct sol_guard_core *core)
{
	struct sol_answer answer;
	u32 used[SOL_TRAFFICS];
	int i;

	look_around(core);
	if (sol_guard.set.per_task)
		sol_regulator_weight(sol_guard.reg, core->cpu, core->weight);
	sol_regulator_active(sol_guard.reg, core->cpu, core->busy);
	read_used(core, used);
	for (i = 0; i < SOL_TRAFFICS; i++)
		core->base[i] += used[i];
	answer = sol_regulator_core(sol_guard.reg, core->cpu, used);
	arm(core, &answer);
	obey(core, &answer);
}

static void settle(struct sol_guard_core *core)
{
	set_stop(core, core->ready && !sol_guard.stalled &&
		 sol_regulator_stopped(sol_guard.reg, core->cpu));
}

void sol_guard_core_sync(struct sol_guard_core *core)
{
	raw_spin_lock(&sol_guard.lock);
	core->interrupts++;
	if (core->ready && !rules_of(core)->begun)
		begin(core);
	settle(core);
	raw_spin_unlock(&sol_guard.lock);
}

/*
 * When proportional sharing began a period at once, the next one is due one period
 * from now, as in the paper. Now and then the timer must expire nevertheless, since
 * reservations change only when a period begins for all. timer_fn() need not call
 * this: it counts from now anyway.
 */
static void postpone(void)
{
	if (!sol_guard.postpone || smp_processor_id() != sol_guard.master)
		return;
	sol_guard.postpone = false;
	sol_guard.postponed++;
	hrtimer_start(&sol_guard.timer, ns_to_ktime(sol_guard_period_ns()),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static void overflowed(struct irq_work *work)
{
	struct sol_guard_core *core = container_of(work, struct sol_guard_core,
						   overflowed);
	struct sol_answer answer;
	u32 used[SOL_TRAFFICS];
	unsigned long flags;

	raw_spin_lock_irqsave(&sol_guard.lock, flags);
	if (!core->ready)
		goto out;
	core->overflows++;
	look_around(core);
	/* A CPU that wakes shares by weight from the next period on, not the one after. */
	if (core->busy)
		sol_regulator_active(sol_guard.reg, core->cpu, true);
	read_used(core, used);
	answer = sol_regulator_used(sol_guard.reg, core->cpu, used);
	if (answer.order == SOL_STOP || answer.order == SOL_RESTART)
		disarm(core);	/* it is past its limit already */
	else
		arm(core, &answer);
	obey(core, &answer);
	settle(core);
	postpone();
out:
	raw_spin_unlock_irqrestore(&sol_guard.lock, flags);
}

/* Any context, NMI too. */
static void on_overflow(struct perf_event *counter,
			struct perf_sample_data *data, struct pt_regs *regs)
{
	struct sol_guard_core *core = counter->overflow_handler_context;

	irq_work_queue(&core->overflowed);
}

/* ---- Calls ---- */

static void called(void *info)
{
	sol_guard_core_sync(info);
	raw_spin_lock(&sol_guard.lock);
	postpone();
	raw_spin_unlock(&sol_guard.lock);
}

void sol_guard_core_call(struct sol_guard_core *core)
{
	/* -EBUSY: one is under way, and will see what we have just changed. */
	smp_call_function_single_async(core->cpu, &core->call);
}

/*
 * The watchdog lets a CPU go if no period begins. It is a timer of the CPU's own, so
 * that it depends neither on the CPU that begins periods nor on threads.
 */
static enum hrtimer_restart watchdog_fn(struct hrtimer *timer)
{
	struct sol_guard_core *core = container_of(timer, struct sol_guard_core,
						   watchdog);
	u64 patience = sol_guard_patience_ns();
	unsigned long flags;

	raw_spin_lock_irqsave(&sol_guard.lock, flags);
	if (core->stop && !sol_guard.stalled &&
	    ktime_get_ns() - sol_guard.begun_at > patience) {
		sol_guard.stalled = true;
		sol_guard.stalls++;
	}
	if (sol_guard.stalled)
		set_stop(core, false);
	raw_spin_unlock_irqrestore(&sol_guard.lock, flags);
	hrtimer_forward_now(timer, ns_to_ktime(patience / 2));
	return HRTIMER_RESTART;
}

/* ---- Coming and going; sol_guard_mutex ---- */

static int counters_new(struct sol_guard_core *core)
{
	const struct sol_guard_set *set = &sol_guard.set;
	int i;

	for (i = 0; i < SOL_TRAFFICS; i++) {
		struct perf_event *counter;

		if (!*set->name[i])
			continue;
		core->step = i;
		counter = sol_counter_new(&set->event[i], core->cpu,
					  set->kernel, on_overflow, core);
		if (IS_ERR(counter))
			return PTR_ERR(counter);
		core->counter[i] = counter;
		if (!sol_counter_works(counter))
			return -EBUSY;
	}
	return 0;
}

static void parts_free(struct sol_guard_core *core)
{
	int i;

	/* It runs if the CPU has taken part, even if it left again. */
	hrtimer_cancel(&core->watchdog);
	for (i = 0; i < SOL_TRAFFICS; i++) {
		sol_counter_free(core->counter[i]);
		core->counter[i] = NULL;
	}
	irq_work_sync(&core->overflowed);
	if (core->stop_thread)
		kthread_stop(core->stop_thread);
	core->stop_thread = NULL;
}

/*
 * On the CPU: it takes part from the next period on. Not if it is about to go offline
 * and its callback was called already.
 */
static void core_enter(void *info)
{
	struct sol_guard_core *core = info;
	u64 interval = sol_guard_patience_ns() / 2;
	u32 used[SOL_TRAFFICS];
	int i;

	raw_spin_lock(&sol_guard.lock);
	if (core->gone) {
		raw_spin_unlock(&sol_guard.lock);
		return;
	}
	for (i = 0; i < SOL_TRAFFICS; i++)
		core->base[i] = 0;
	read_used(core, used);
	for (i = 0; i < SOL_TRAFFICS; i++)
		core->base[i] = used[i];
	core->ready = true;
	cpumask_set_cpu(core->cpu, &sol_guard.ready);
	sol_regulator_online(sol_guard.reg, core->cpu, true);
	raw_spin_unlock(&sol_guard.lock);
	hrtimer_start(&core->watchdog, ns_to_ktime(interval),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/* No interrupt does anything for this CPU any more. Under the lock. */
static void leave(struct sol_guard_core *core)
{
	struct sol_answer answer;

	if (!core->ready)
		return;
	core->ready = false;
	cpumask_clear_cpu(core->cpu, &sol_guard.ready);
	answer = sol_regulator_online(sol_guard.reg, core->cpu, false);
	obey(core, &answer);
	set_stop(core, false);
}

static void core_leave(void *info)
{
	raw_spin_lock(&sol_guard.lock);
	leave(info);
	raw_spin_unlock(&sol_guard.lock);
}

void sol_guard_core_init(struct sol_guard_core *core)
{
	core->overflowed = IRQ_WORK_INIT_HARD(overflowed);
	INIT_CSD(&core->call, called, core);
	init_waitqueue_head(&core->held);
	sol_timer_init(&core->watchdog, watchdog_fn,
		       HRTIMER_MODE_REL_PINNED_HARD);
}

static int enter(struct sol_guard_core *core)
{
	int err = smp_call_function_single(core->cpu, core_enter, core, true);

	core->step = SOL_STEP_ENTER;
	return err || core->ready ? err : -ENODEV;
}

int sol_guard_core_up(struct sol_guard_core *core)
{
	int err;

	core->stale = false;
	err = counters_new(core) ?: stop_thread_new(core) ?: enter(core);
	if (err)
		parts_free(core);
	return err;
}

/*
 * After the first call no CPU calls this one any more, and the second comes
 * after what they had sent until then. A trace shows it by its name.
 */
noinline void sol_guard_core_down(struct sol_guard_core *core)
{
	hrtimer_cancel(&core->watchdog);
	/* It fails if the CPU is offline: then it has left. */
	smp_call_function_single(core->cpu, core_leave, core, true);
	smp_call_function_single(core->cpu, core_leave, core, true);
	parts_free(core);
}

void sol_guard_core_offline(struct sol_guard_core *core)
{
	hrtimer_cancel(&core->watchdog);
	raw_spin_lock_irq(&sol_guard.lock);
	core->gone = true;
	core->stale = true;
	leave(core);
	raw_spin_unlock_irq(&sol_guard.lock);
}
