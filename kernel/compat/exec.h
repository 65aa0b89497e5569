/* SPDX-License-Identifier: GPL-2.0 */
/* execve(): when the program's file is opened. */
#ifndef SOLOIST_COMPAT_EXEC_H
#define SOLOIST_COMPAT_EXEC_H

#include <linux/version.h>

/* Before 6.8 only after the arguments were copied to the new stack. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define SOL_EXEC_OPENS_LATE
#endif

#endif /* SOLOIST_COMPAT_EXEC_H */
