/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stopping a CPU: a thread that only the stop class preempts, and how it waits.
 *
 * A "special" deadline task, as schedutil's own threads are: no admission, no
 * runtime that ends, and it preempts every other deadline task when it wakes.
 * The scheduler then runs whoever has the earliest deadline, so the relative
 * deadline is one in the past: none is earlier but that of a task which is late
 * by more. The flag is in linux/kernel/sched/sched.h, which no module sees; it
 * has the same value since 4.16. A kernel without schedutil takes the flag and
 * makes an ordinary deadline task of it, one with a runtime of 1 ns: that would
 * stop nobody.
 */
#ifndef SOLOIST_COMPAT_STOP_H
#define SOLOIST_COMPAT_STOP_H

#include <linux/irqflags.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/time64.h>
#include <uapi/linux/sched/types.h>
#ifdef CONFIG_ARM64
#include <asm/cpuidle.h>
#endif

#define SOL_SCHED_FLAG_SUGOV	0x10000000
#define SOL_DEADLINE_AGO	(86400ull * NSEC_PER_SEC)
#define SOL_CAN_OUTRANK_ALL	IS_ENABLED(CONFIG_CPU_FREQ_GOV_SCHEDUTIL)

/* All but the stop class; without SOL_CAN_OUTRANK_ALL all but deadline tasks. */
static inline int sol_outrank(struct task_struct *task)
{
	struct sched_attr fifo = {
		.size = sizeof(fifo),
		.sched_policy = SCHED_FIFO,
		.sched_priority = MAX_RT_PRIO - 1,
	};
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_DEADLINE,
		.sched_flags = SOL_SCHED_FLAG_SUGOV,
		.sched_runtime = 1,
		.sched_deadline = -SOL_DEADLINE_AGO,
		.sched_period = -SOL_DEADLINE_AGO,
	};

	return sched_setattr_nocheck(task, SOL_CAN_OUTRANK_ALL ? &attr : &fifo);
}

/* Called with interrupts off: wait for one, with interrupts on afterwards. */
static inline void sol_wait_for_interrupt(void)
{
#if defined(CONFIG_X86)
	safe_halt();
#elif defined(CONFIG_ARM64)
	struct arm_cpuidle_irq_context context;

	/* With pseudo-NMIs wfi does not wake for what the interrupt controller masks. */
	arm_cpuidle_save_irq_context(&context);
	dsb(sy);
	wfi();
	arm_cpuidle_restore_irq_context(&context);
	local_irq_enable();
#else
	local_irq_enable();
	cpu_relax();
#endif
}

#endif /* SOLOIST_COMPAT_STOP_H */
