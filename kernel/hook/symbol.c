// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols: kallsyms_lookup_name() is not exported, but sprint_symbol() is, which names
 * any address. Both are of one file of the kernel, so one is near the other: it is found
 * symbol by symbol. An unarmed kprobe would tell it, too, but not every kernel has them
 * (Raspberry Pi OS).
 */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/static_call.h>
#include <linux/string.h>

#include "symbol.h"

/* A linker that sorts functions may put other files' between the two. */
#define WALK_MAX	65536u

typedef unsigned long lookup_fn(const char *name);
DEFINE_STATIC_CALL_NULL(sol_lookup, lookup_fn);

void *sol_symbol_find(const char *name)
{
	return (void *)static_call(sol_lookup)(name);
}

struct symbol {
	char name[KSYM_SYMBOL_LEN];
	unsigned long start, size;
};

/* The symbol in which @addr lies. */
static bool symbol_at(unsigned long addr, struct symbol *symbol)
{
	unsigned long offset;
	char *plus;

	sprint_symbol(symbol->name, addr);	/* name+offset/size */
	plus = strrchr(symbol->name, '+');
	if (!plus || sscanf(plus, "+%lx/%lx", &offset, &symbol->size) != 2)
		return false;
	*plus = '\0';
	symbol->start = addr - offset;
	return symbol->size;
}

/* Where the function @name begins, found from @addr on upwards or downwards; or 0. */
static unsigned long walk(const char *name, unsigned long addr, bool up)
{
	struct symbol symbol;
	unsigned int i;

	for (i = 0; i < WALK_MAX && symbol_at(addr, &symbol); i++) {
		if (!strcmp(symbol.name, name))
			return symbol.start;
		addr = up ? symbol.start + symbol.size : symbol.start - 1;
		cond_resched();
	}
	return 0;
}

int sol_symbol_init(void)
{
	static const char name[] = "kallsyms_lookup_name";
	unsigned long known = (unsigned long)sprint_symbol;
	unsigned long addr = walk(name, known, true) ?: walk(name, known, false);

	if (!addr) {
		pr_err("%s() can't be found: the kernel names no symbols near %pS\n",
		       name, sprint_symbol);
		return -ENOENT;
	}
	static_call_update(sol_lookup, (lookup_fn *)addr);
	return 0;
}
