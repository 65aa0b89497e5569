/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SOLOIST_MMAP_ABI_H
#define SOLOIST_MMAP_ABI_H

/**
 * sol_mmap_abi_level() - the module parameter mmap_abi; any context
 *
 * Return: 0: off; 1: for CAP_SYS_ADMIN; 2: for everyone.
 */
int sol_mmap_abi_level(void);

/**
 * sol_mmap_abi_init() - hook mmap(), unless the parameter is 0 or the kernel lacks it
 *
 * May sleep.
 *
 * Return: 0; -EINVAL for a parameter of no meaning; another errno if it can't be hooked.
 */
int sol_mmap_abi_init(void);

/**
 * sol_mmap_abi_exit() - unhook it, and wait until no call is inside; may sleep
 */
void sol_mmap_abi_exit(void);

#endif /* SOLOIST_MMAP_ABI_H */
