// SPDX-License-Identifier: GPL-2.0
/*
 * Commands: checks that every write has in common.
 *
 * Locking: none.
 */
#include <linux/capability.h>
#include <linux/export.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "status.h"
#include "command.h"

int sol_command_may(const char *what, const char *page, size_t count)
{
	if (!capable(CAP_SYS_ADMIN))
		return sol_deny(-EPERM, "%s: needs CAP_SYS_ADMIN", what);
	if (count >= SOL_FILE_SIZE - 1)
		return sol_deny(-E2BIG,
				  "%s: more than %u bytes in one write",
				  what, SOL_FILE_SIZE - 2);
	/* A parser would stop there, and lose the rest. */
	if (count && strnlen(page, count) < count)
		return sol_deny(-EINVAL, "%s: a NUL byte is no text", what);
	return 0;
}
EXPORT_SYMBOL_GPL(sol_command_may);

size_t sol_command_trim(const char *page, size_t count)
{
	return count && page[count - 1] == '\n' ? count - 1 : count;
}

int sol_command_number(const char *what, const char *page, u64 max, u64 *number)
{
	if (kstrtou64(page, 10, number) || *number > max)
		return sol_deny(-EINVAL,
				  "%s: expected a number from 0 to %llu",
				  what, max);
	return 0;
}
