/* SPDX-License-Identifier: GPL-2.0 */
/* The directories of the control interface, docs/interface.md. */
#ifndef SOLOIST_CONTROL_H
#define SOLOIST_CONTROL_H

#include <linux/configfs.h>
#include "group.h"

extern const struct config_item_type sol_groups_type;	/* control_group.c */
extern const struct config_item_type sol_rules_type;	/* control_rule.c */
extern struct configfs_bin_attribute *sol_root_bin_attrs[];	/* control_implicit.c */

/* control_guard.c: guard/, and a group's `bandwidth` */
int sol_control_guard_init(struct config_group *parent);
void sol_control_guard_exit(void);
ssize_t sol_bandwidth_show(const struct sol_group *group, char *page);
int sol_bandwidth_store(struct sol_group *group, const char *page,
			size_t count);

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

#endif /* SOLOIST_CONTROL_H */
