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
 * sol_lists_end(); never call the original.
 */
#ifndef SOLOIST_HOOK_H
#define SOLOIST_HOOK_H

#include <linux/ftrace.h>
#include <linux/srcu.h>
#include <linux/static_call.h>

/* What a C side returns to let the original run. No pointer, no errno. */
#define SOL_PASS	0x534f4c31ul

struct sol_hook {
	const char *symbol;	/* function to hook */
	const char *symbol_alt;	/* its name in other versions, or NULL */
	void (*trampoline)(void);
	/* Private to hook.c: */
	struct ftrace_ops ops;
	bool attached;
};

#define SOL_HOOK(sym, alt, tramp) \
	{ .symbol = (sym), .symbol_alt = (alt), .trampoline = (tramp) }

/* Of the function that @hook is for, by either name; 0: not in this kernel. */
unsigned long sol_hook_address(const struct sol_hook *hook);

/* All of @hooks, or none: an errno, and the reason in the kernel log. */
int sol_hooks_attach(struct sol_hook *hooks, unsigned int n);

/*
 * Detach those that are attached and wait until no task is in a trampoline,
 * nor asleep in a C side. May take a second.
 */
void sol_hooks_detach(struct sol_hook *hooks, unsigned int n);

/* Address of a kernel symbol, function or variable; NULL: none. May sleep. */
void *sol_symbol(const char *name);

/* As sol_symbol(), but complains in the kernel log when there is none. */
void *sol_symbol_needed(const char *name);

/*
 * Call a function that is not exported. Not through a pointer: under IBT the
 * kernel has sealed many, and only a direct call may enter them. So:
 *
 *	typedef bool take_fn(struct page *page);
 *	DEFINE_STATIC_CALL_NULL(sol_take, take_fn);
 *	...
 *	err = sol_bind(sol_take, "take_page_off_buddy");   (0 or -ENOENT)
 *	static_call(sol_take)(page);
 */
#define sol_bind(key, name) ({						\
	void *sol_f_ = sol_symbol_needed(name);				\
									\
	if (sol_f_)							\
		static_call_update(key, sol_f_);			\
	sol_f_ ? 0 : -ENOENT;						\
})

extern struct srcu_struct sol_lists_users, sol_waiting;

/*
 * Around whatever may sleep in a C side, or uses the lists; pass the value on to
 * _end(). Not around what takes sol_group_mutex: who holds that, to set a map,
 * waits for these sections. Such a C side is between srcu_read_lock() and
 * _unlock() of sol_waiting instead.
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
