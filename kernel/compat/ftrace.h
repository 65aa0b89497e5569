/* SPDX-License-Identifier: GPL-2.0 */
/* ftrace direct calls: the interface of 6.1 and the one of 6.6 and later. */
#ifndef SOLOIST_COMPAT_FTRACE_H
#define SOLOIST_COMPAT_FTRACE_H

#include <linux/ftrace.h>
#include <linux/rcupdate.h>
#include <linux/version.h>

static inline int sol_direct_attach(struct ftrace_ops *ops, unsigned long addr)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	return register_ftrace_direct(ops, addr);
#else
	return register_ftrace_direct_multi(ops, addr);
#endif
}

/*
 * Unregistering waits for two grace periods of RCU-tasks for each ops that may
 * be freed afterwards. Ours stay until the module is gone: to detach many, wait
 * once, by sol_direct_wait(). (Ops of direct calls have no
 * trampoline of ftrace's own that would be freed then.)
 */
static inline void sol_direct_detach(struct ftrace_ops *ops, unsigned long addr)
{
	ops->flags &= ~FTRACE_OPS_FL_DYNAMIC;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	unregister_ftrace_direct(ops, addr, true);
#else
	unregister_ftrace_direct_multi(ops, addr);
	ftrace_free_filter(ops);
#endif
}

/* Until nobody is in a trampoline that was detached, or on the way to one. */
static inline void sol_direct_wait(void)
{
	synchronize_rcu_tasks_rude();
	synchronize_rcu_tasks();
}

#endif /* SOLOIST_COMPAT_FTRACE_H */
