// SPDX-License-Identifier: GPL-2.0
/*
 * Hooks: ftrace direct calls, and leaving them safely.
 *
 * table.c lists what a kernel must have. A function has one direct user. If somebody
 * else is that (BPF fentry, livepatch), the kernel log says so and the module refuses
 * to load rather than to work by halves.
 *
 * Leaving: hooks are unregistered together, then we wait for all tasks that *run* in a
 * trampoline. A task that sleeps in a C side is inside a section of sol_lists_users or
 * sol_waiting. When these have ended, one more grace period of RCU-tasks sees the last
 * task out of the trampoline.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "../compat/ftrace.h"
#include "hook.h"
#include "symbol.h"

DEFINE_SRCU(sol_lists_users);
DEFINE_SRCU(sol_waiting);

static int hook_attach(struct sol_hook *hook)
{
	unsigned long at = (unsigned long)sol_symbol(hook->symbol);
	int err;

	if (!at)
		return -ENOENT;
	memset(&hook->ops, 0, sizeof(hook->ops));
	err = ftrace_set_filter_ip(&hook->ops, at, 0, 1);
	if (err) {
		pr_err("hooking '%s' failed (%d)\n", hook->symbol, err);
		return err;
	}
	err = sol_direct_attach(&hook->ops, (unsigned long)hook->trampoline);
	if (err == -EBUSY)
		pr_err("'%s' is held by another direct user, for instance BPF fentry or a live patch; remove that first\n",
		       hook->symbol);
	else if (err)
		pr_err("hooking '%s' failed (%d)\n", hook->symbol, err);
	if (err) {
		ftrace_free_filter(&hook->ops);
		return err;
	}
	/* From now on kernel.ftrace_enabled=0 answers EBUSY. */
	hook->ops.flags |= FTRACE_OPS_FL_PERMANENT;
	hook->attached = true;
	return 0;
}

int sol_hooks_attach(struct sol_hook *hooks, unsigned int n)
{
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		err = hook_attach(&hooks[i]);
		if (err) {
			sol_hooks_detach(hooks, i);
			return err;
		}
	}
	return 0;
}

int sol_hooks_attach_present(struct sol_hook *hooks, unsigned int n)
{
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		err = sol_symbol(hooks[i].symbol) ? sol_hooks_attach(&hooks[i], 1) : 0;
		if (err) {
			sol_hooks_detach(hooks, i);
			return err;
		}
	}
	return 0;
}

void sol_hooks_detach(struct sol_hook *hooks, unsigned int n)
{
	unsigned int i;
	bool any = false;

	for (i = n; i-- > 0;) {
		if (!hooks[i].attached)
			continue;
		sol_direct_detach(&hooks[i].ops,
				  (unsigned long)hooks[i].trampoline);
		hooks[i].attached = false;
		any = true;
	}
	if (!any)
		return;
	sol_direct_wait();
	synchronize_srcu(&sol_lists_users);
	synchronize_srcu(&sol_waiting);
	synchronize_rcu_tasks();
}

int sol_hook_init(void)
{
	const int *enabled;
	int err;

	err = sol_symbol_init() ?: sol_table_check();
	if (err)
		return err;
	enabled = sol_symbol("ftrace_enabled");
	if (!READ_ONCE(*enabled)) {
		pr_err("ftrace is switched off; sysctl kernel.ftrace_enabled=1\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

void sol_hook_exit(void)
{
	/* Callbacks of SRCU must be done before the text goes. */
	srcu_barrier(&sol_lists_users);
}
