/* SPDX-License-Identifier: GPL-2.0 */
/* What all files of the control interface share: a write is a command. */
#ifndef SOLOIST_COMMAND_H
#define SOLOIST_COMMAND_H

#include <linux/types.h>

/*
 * What every write checks first: CAP_SYS_ADMIN, and that configfs has not cut
 * the text in two (it takes 4095 bytes at a time). 0, or an errno and words.
 */
int sol_command_may(const char *what, size_t count);

/* Length of @page[count] without its last newline. */
size_t sol_command_trim(const char *page, size_t count);

/* Parse a decimal number of at most @max, or refuse in words about @what. */
int sol_command_number(const char *what, const char *page, size_t count,
		       u64 max, u64 *number);

#endif /* SOLOIST_COMMAND_H */
