/* SPDX-License-Identifier: GPL-2.0 */
/* Address translation by the firmware of Intel's servers (ACPI ADXL). */
#ifndef SOLOIST_ADXL_H
#define SOLOIST_ADXL_H

#include <linux/types.h>

/**
 * sol_adxl_components_show() - names of what an address translates to
 * @page: of PAGE_SIZE bytes; one name a line, nothing without ADXL
 *
 * Return: bytes written.
 */
ssize_t sol_adxl_components_show(char *page);

/**
 * sol_adxl_store() - translate up to 16 addresses
 * @page: physical addresses, with white space between
 * @count: bytes of @page
 *
 * May sleep. Return: 0; -EPERM, -E2BIG, -EINVAL; -ENODEV: neither the firmware
 * nor the kernel translates; -ENOMEM. last_cmd_status holds the reason.
 */
int sol_adxl_store(const char *page, size_t count);

/**
 * sol_adxl_show() - the last translations
 * @page: of PAGE_SIZE bytes; a line for each address: the address, then its
 * components in the order of their names, `-` for one that is not defined; or
 * `error` if the firmware does not translate the address
 *
 * Return: bytes written.
 */
ssize_t sol_adxl_show(char *page);

void sol_adxl_exit(void);

#endif /* SOLOIST_ADXL_H */
