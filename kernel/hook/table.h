/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of functions that are hooked, symbols that are looked up, tracepoints and
 * members of private structs: each is one row of table.c. Nothing else is found.
 */
#ifndef SOLOIST_TABLE_H
#define SOLOIST_TABLE_H

#include <linux/errno.h>
#include <linux/static_call.h>
#include <linux/types.h>

struct tracepoint;

/**
 * sol_table_check() - compare this kernel with all rows
 *
 * The kernel log tells what it lacks and what is lost by that.
 *
 * Return: 0; -ENOENT: it lacks a row that is needed.
 */
int sol_table_check(void);

/* The names of rows that it lacks, with commas, or "-", into @buf. Return: length. */
size_t sol_table_lacks(char *buf, size_t size);

/* The address of row @name, by either of its names; NULL: lacking. May sleep. */
void *sol_symbol(const char *name);

/* Tracepoint @name; NULL: lacking. May sleep. */
struct tracepoint *sol_event(const char *name);

/* The offset of "struct.member" in bytes; -ENOENT: lacking. May sleep. */
int sol_member_at(const char *name);

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
	void *sol_f_ = sol_symbol(name);				\
									\
	if (sol_f_)							\
		static_call_update(key, sol_f_);			\
	sol_f_ ? 0 : -ENOENT;						\
})

#endif /* SOLOIST_TABLE_H */
