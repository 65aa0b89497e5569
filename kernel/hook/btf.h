/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What no header for modules shows, asked of the kernel's own type information
 * (CONFIG_DEBUG_INFO_BTF). May sleep.
 */
#ifndef SOLOIST_BTF_H
#define SOLOIST_BTF_H

#include <linux/types.h>

/* Where a member is, in bytes; -ENOENT: no such member, or no information. */
int sol_btf_member(const char *structure, const char *member);

/*
 * Is argument @n, from 0, of @function a pointer to @structure? 1, 0, or
 * -ENOENT: there is no information about the function.
 */
int sol_btf_takes(const char *function, unsigned int n, const char *structure);

#endif /* SOLOIST_BTF_H */
