/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The mmap() calls of CAMC (3.3, 3.4) and TintMalloc (III.B), for programs.
 * They work while soloist.ko is loaded with mmap_abi=1 (for CAP_SYS_ADMIN) or
 * mmap_abi=2 (for everyone). docs/reference/groups.md explains them.
 *
 *	mmap((void *)(color | SET_LLC_COLOR), 0,
 *	     PROT_READ | PROT_WRITE | COLOR_ALLOC, flags, -1, 0);
 *	mmap((void *)(COLOR_ON + n), 4096,
 *	     PROT_READ | PROT_WRITE | COLOR_ALLOC, flags, -1, 0);
 *
 * The papers print these calls, but the values of the modes were in figures
 * that are lost; these are ours. They fit a positive int, so that no compiler
 * widens them with a sign. Both calls return NULL for success, or MAP_FAILED;
 * nothing is mapped.
 */
#ifndef _UAPI_SOLOIST_H
#define _UAPI_SOLOIST_H

#define SOLOIST_ABI		1

/* In mmap()'s third argument, beside PROT_*. */
#define COLOR_ALLOC		(1 << 30)

/* In mmap()'s first argument: the mode, and a number below 2^28. */
#define COLOR_MODE_SHIFT	28
#define COLOR_NUMBER		((1 << COLOR_MODE_SHIFT) - 1)

/* TintMalloc, length 0: add or drop one colour of the calling thread. */
#define SET_MEM_COLOR		(1 << COLOR_MODE_SHIFT)	/* bank colour bc */
#define CLEAR_MEM_COLOR		(2 << COLOR_MODE_SHIFT)
#define SET_LLC_COLOR		(3 << COLOR_MODE_SHIFT)
#define CLEAR_LLC_COLOR		(4 << COLOR_MODE_SHIFT)

/* CAMC, any other length: register the calling user; n colours per process. */
#define COLOR_ON		(5 << COLOR_MODE_SHIFT)	/* n = 0: one */
#define COLOR_OFF		(6 << COLOR_MODE_SHIFT)

#endif /* _UAPI_SOLOIST_H */
