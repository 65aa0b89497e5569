/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of what a kernel must have: each function that is hooked, each
 * symbol that is looked up, each tracepoint and each member of a private struct
 * is one row of table.c. What has no row is not found.
 */
#ifndef SOLOIST_TABLE_H
#define SOLOIST_TABLE_H

#include <linux/errno.h>
#include <linux/static_call.h>
#include <linux/types.h>

/*
 * Hold this kernel against all rows. What it lacks is in the kernel log, with
 * what is lost. 0, or -ENOENT: a row is needed that it lacks.
 */
int sol_table_check(void);

/* Names of the rows that it lacks, with commas, "-" for none. The length. */
size_t sol_table_lacks(char *buf, size_t size);

/* Of the row @name, by either name; NULL: lacking. May sleep. */
void *sol_symbol(const char *name);

/* The tracepoint of that name is to be used. */
bool sol_event_there(const char *name);

/* Offset of "struct.member", in bytes; -ENOENT: lacking. May sleep. */
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
