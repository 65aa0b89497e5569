/* SPDX-License-Identifier: GPL-2.0 */
/* The unbound queue has another name since 6.18, where the old one warns. */
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

#endif
