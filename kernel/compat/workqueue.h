/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's queues have other names since 6.18, where the old ones warn. */
#ifndef SOLOIST_COMPAT_WORKQUEUE_H
#define SOLOIST_COMPAT_WORKQUEUE_H

#include <linux/version.h>
#include <linux/workqueue.h>

static inline struct workqueue_struct *sol_unbound_wq(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return system_dfl_wq;
#else
	return system_unbound_wq;
#endif
}

/* Work runs on the CPU that it is queued on. */
static inline struct workqueue_struct *sol_bound_wq(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return system_percpu_wq;
#else
	return system_wq;
#endif
}

#endif
