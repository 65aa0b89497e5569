/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SOLOIST_STATUS_H
#define SOLOIST_STATUS_H

#include <linux/types.h>

/*
 * Leave a sentence in last_cmd_status and return @err, so that a refusal is
 * one statement: return sol_deny(-EBUSY, "map: %u groups exist", n);
 * May sleep.
 */
__printf(2, 3) int sol_deny(int err, const char *fmt, ...);

/* A command was done: "ok". */
void sol_status_ok(void);

/* "ok" and @count if @err is 0, or @err, whose words are there already. */
ssize_t sol_status_done(int err, size_t count);

ssize_t sol_status_show(char *page);

#endif /* SOLOIST_STATUS_H */
