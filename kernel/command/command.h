/* SPDX-License-Identifier: GPL-2.0 */
/* Checks that all files of the control interface share: a write is a command. */
#ifndef SOLOIST_COMMAND_H
#define SOLOIST_COMMAND_H

#include <linux/types.h>

/* What configfs reads or writes at once, whatever the size of a page. */
#define SOL_FILE_SIZE	4096

/**
 * sol_command_may() - the first check of every write
 * @what: the file's name
 * @page: the text
 * @count: its bytes; configfs cuts a longer text into pieces of 4095 bytes. 0: there is none
 *
 * Return: 0; -EPERM without CAP_SYS_ADMIN, -E2BIG if the text may have been cut, -EINVAL if
 * it has a NUL byte; then there are words.
 */
int sol_command_may(const char *what, const char *page, size_t count);

/* Length of @page[count] without its last newline. */
size_t sol_command_trim(const char *page, size_t count);

/**
 * sol_command_number() - parse a decimal number
 * @what: the file's name
 * @page: the text, after sol_command_may()
 * @max: largest number
 * @number: becomes the number
 *
 * Return: 0, or -EINVAL and words.
 */
int sol_command_number(const char *what, const char *page, u64 max, u64 *number);

#endif /* SOLOIST_COMMAND_H */
