// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols: kallsyms_lookup_name() is not exported; a kprobe that is never armed
 * tells its address.
 */
#include <linux/kprobes.h>
#include <linux/printk.h>
#include <linux/static_call.h>

#include "symbol.h"

typedef unsigned long lookup_fn(const char *name);
DEFINE_STATIC_CALL_NULL(sol_lookup, lookup_fn);

void *sol_symbol_find(const char *name)
{
	return (void *)static_call(sol_lookup)(name);
}

int sol_symbol_init(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	int err = register_kprobe(&probe);

	if (err) {
		pr_err("kallsyms_lookup_name can't be found (%d): kprobes are off or locked down\n",
		       err);
		return err;
	}
	static_call_update(sol_lookup, (lookup_fn *)probe.addr);
	unregister_kprobe(&probe);
	return 0;
}
