/* SPDX-License-Identifier: GPL-2.0 */
/* High-resolution timers: their function was set by hand until 6.12. */
#ifndef SOLOIST_COMPAT_TIMER_H
#define SOLOIST_COMPAT_TIMER_H

#include <linux/hrtimer.h>
#include <linux/version.h>

typedef enum hrtimer_restart sol_timer_fn(struct hrtimer *timer);

static inline void sol_timer_init(struct hrtimer *timer, sol_timer_fn *fn,
				  enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = fn;
#endif
}

#endif /* SOLOIST_COMPAT_TIMER_H */
