/* SPDX-License-Identifier: GPL-2.0 */
/* What all files of the control interface share: a write is a command. */
#ifndef SOLOIST_COMMAND_H
#define SOLOIST_COMMAND_H

#include "../palette/life.h"

extern const char *const sol_exhaust_name[SOL_N_EXHAUST];

/*
 * What every write checks first: CAP_SYS_ADMIN, and that configfs has not cut
 * the text in two (it takes 4095 bytes at a time). 0, or an errno and words.
 */
int sol_control_may(const char *what, size_t count);

/* Length of @page[count] without its last newline. */
size_t sol_control_trim(const char *page, size_t count);

/* Parse a decimal number of at most @max, or refuse in words about @what. */
int sol_control_number(const char *what, const char *page, size_t count,
		       u64 max, u64 *number);

/* Parse fail | grow | spill. */
int sol_control_exhaust(const char *page, size_t count, u8 *exhaust);

#endif /* SOLOIST_COMMAND_H */
