/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SOLOIST_MMAP_ABI_H
#define SOLOIST_MMAP_ABI_H

/* The module parameter: 0 off, 1 for CAP_SYS_ADMIN, 2 for everyone. */
int sol_mmap_abi_level(void);

int sol_mmap_abi_init(void);
void sol_mmap_abi_exit(void);

#endif /* SOLOIST_MMAP_ABI_H */
