/* SPDX-License-Identifier: GPL-2.0 */
/* ftrace direct calls: the interface of 6.1 and the one of 6.6 and later. */
#ifndef SOLOIST_COMPAT_FTRACE_H
#define SOLOIST_COMPAT_FTRACE_H

#include <linux/ftrace.h>
#include <linux/version.h>

static inline int sol_direct_attach(struct ftrace_ops *ops, unsigned long addr)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	return register_ftrace_direct(ops, addr);
#else
	return register_ftrace_direct_multi(ops, addr);
#endif
}

static inline void sol_direct_detach(struct ftrace_ops *ops, unsigned long addr)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	unregister_ftrace_direct(ops, addr, true);
#else
	unregister_ftrace_direct_multi(ops, addr);
	ftrace_free_filter(ops);
#endif
}

#endif /* SOLOIST_COMPAT_FTRACE_H */
