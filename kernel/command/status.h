/* SPDX-License-Identifier: GPL-2.0 */
/* last_cmd_status: why the last command was refused, in words. */
#ifndef SOLOIST_STATUS_H
#define SOLOIST_STATUS_H

#include <linux/list.h>
#include <linux/types.h>

struct task_struct;

/**
 * sol_deny() - refuse a command
 * @err: negative errno
 * @fmt: the reason, for last_cmd_status
 *
 * A refusal is one statement: return sol_deny(-EBUSY, "map: %u groups exist", n);
 *
 * May sleep. Return: @err.
 */
__printf(2, 3) int sol_deny(int err, const char *fmt, ...);

/* Refuse @what, a file or a group, for want of memory: -ENOMEM and words. May sleep. */
int sol_no_memory(const char *what);

/**
 * struct sol_silence - what a thread does that is no command
 * @link: in a table
 * @task: the thread
 */
struct sol_silence {
	struct hlist_node link;
	struct task_struct *task;
};

/**
 * sol_silence_begin() - the current thread's refusals are no answers to a command
 * @silence: on its stack, until sol_silence_end()
 *
 * An exec or a fault of any user must not replace what root is to read. Statistics count
 * these refusals.
 */
void sol_silence_begin(struct sol_silence *silence);
void sol_silence_end(struct sol_silence *silence);

/* The current thread's command succeeded: "ok". May sleep. */
void sol_status_ok(void);

/* The current thread's command succeeded, and the sentence says what else it did. */
__printf(1, 2) void sol_status_note(const char *fmt, ...);

/* The result of a file's store(): @count, and "ok", if @err is 0; or @err. */
ssize_t sol_status_done(int err, size_t count);

/* Write the sentence for the current thread to @page. Return: bytes written. */
ssize_t sol_status_show(char *page);

#endif /* SOLOIST_STATUS_H */
