/* SPDX-License-Identifier: GPL-2.0 */
/* firmware/locate, locate.c: from a channel's addresses to the system's. */
#ifndef SOLOIST_LOCATE_H
#define SOLOIST_LOCATE_H

#include <linux/types.h>

ssize_t sol_locate_show(char *page);
/* 0, or an error whose reason is told. */
int sol_locate_store(const char *page, size_t count);

#endif /* SOLOIST_LOCATE_H */
