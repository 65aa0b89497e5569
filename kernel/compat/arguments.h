/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of arguments for trampolines of the control side, x86-64; see
 * trampoline.h, which is included first.
 */
#ifndef SOLOIST_COMPAT_ARGUMENTS_H
#define SOLOIST_COMPAT_ARGUMENTS_H

/* The third argument (mmap()'s prot) has bit 30, COLOR_ALLOC. */
#define SOL_IF_COLOR_ALLOC				\
	"	testl	$0x40000000, %edx\n"		\
	"	jnz	1f\n"

#endif /* SOLOIST_COMPAT_ARGUMENTS_H */
