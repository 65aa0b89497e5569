/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks: attaching trampolines to functions of a stock kernel, and calling
 * functions that it does not export.
 *
 * A hook is an ftrace direct call: the patched entry of the function calls a
 * trampoline (compat/trampoline.h), which tests in assembly whether the call
 * concerns us, and only then calls C. The C side answers SOL_PASS (go on with
 * the original) or the value that the function shall return at once.
 *
 * Rules for the C side, so that unloading never pulls code from under a task:
 * raw spinlocks only; whatever may sleep stands between sol_lists_begin() and
 * sol_lists_end(), or in a section of sol_waiting; all of it in one such section,
 * for a task that has slept in one and sleeps in a second is asleep where
 * unloading, which waited for the first, no longer looks; never call the
 * original. Between a section and the return a task may be preempted, which a
 * grace period of RCU-tasks waits for.
 */
#ifndef SOLOIST_HOOK_H
#define SOLOIST_HOOK_H

#include <linux/ftrace.h>
#include <linux/srcu.h>

#include "table.h"

/**
 * sol_hook_init() - find what the kernel does not export
 *
 * Return: 0; -ENOENT if this kernel lacks something that is needed, -EOPNOTSUPP
 * if ftrace is switched off; the kernel log says what.
 */
int sol_hook_init(void);
void sol_hook_exit(void);

struct sol_hook {
	const char *symbol;	/* function to hook, by its row in the table */
	void (*trampoline)(void);
	/* Private to hook.c: */
	struct ftrace_ops ops;
	bool attached;
};

#define SOL_HOOK(sym, tramp) \
	{ .symbol = (sym), .trampoline = (tramp) }

/**
 * sol_hooks_attach() - attach hooks, all or none
 * @hooks: the hooks
 * @n: how many
 *
 * May sleep. Return: 0, or an errno; the kernel log tells the reason.
 */
int sol_hooks_attach(struct sol_hook *hooks, unsigned int n);

/* Attach those of @hooks that this kernel has, or none; the table has told of the others. */
int sol_hooks_attach_present(struct sol_hook *hooks, unsigned int n);

/*
 * Detach those of @hooks that are attached. Wait until no task is in a trampoline or
 * sleeps in a C side, which may take a minute (fault/request.c).
 */
void sol_hooks_detach(struct sol_hook *hooks, unsigned int n);

extern struct srcu_struct sol_lists_users, sol_waiting;

/*
 * A section of the lists: code of a C side that may sleep or uses the lists. Pass the
 * result of _begin() to _end(). No section takes sol_group_mutex: setting a map holds
 * that and waits for these sections. A C side that takes it is a section of sol_waiting
 * instead, by srcu_read_lock() and _unlock().
 */
static inline int sol_lists_begin(void)
{
	return srcu_read_lock(&sol_lists_users);
}

static inline void sol_lists_end(int idx)
{
	srcu_read_unlock(&sol_lists_users, idx);
}

#endif /* SOLOIST_HOOK_H */
