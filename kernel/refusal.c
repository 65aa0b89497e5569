// SPDX-License-Identifier: GPL-2.0
/*
 * Refusals in words. last_cmd_status: one sentence about the last command, as resctrl has it.
 *
 * One sentence for the whole system: whoever writes two commands at once from
 * two places reads the later one's. A mutex keeps sentences whole.
 */
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/stdarg.h>
#include <linux/sysfs.h>
#include "refusal.h"

static DEFINE_MUTEX(status_mutex);
static char status[256] = "ok";

int sol_deny(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	mutex_lock(&status_mutex);
	vscnprintf(status, sizeof(status), fmt, args);
	mutex_unlock(&status_mutex);
	va_end(args);
	return err;
}

void sol_status_ok(void)
{
	mutex_lock(&status_mutex);
	strscpy(status, "ok", sizeof(status));
	mutex_unlock(&status_mutex);
}

ssize_t sol_status_done(int err, size_t count)
{
	if (err)
		return err;
	sol_status_ok();
	return count;
}

ssize_t sol_status_show(char *page)
{
	ssize_t n;

	mutex_lock(&status_mutex);
	n = sysfs_emit(page, "%s\n", status);
	mutex_unlock(&status_mutex);
	return n;
}
