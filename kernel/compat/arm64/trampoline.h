/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trampolines of direct hooks, arm64; see ../trampoline.h.
 *
 * At a traced function's entry there stands `mov x9, x30; bl ...`. So on entry x9 is
 * the return to the hooked function's caller and x30 the return into the hooked
 * function, behind its patched entry. To go on with the original, give x30 its old
 * value and branch to behind the entry; to answer in its place, return to x9. x0 to x8
 * (arguments, and where a struct is returned) are kept for the original; x9 to x17 are
 * free there.
 *
 * BTI: out of reach of a `bl` the kernel's ftrace_caller enters by `br x17`, so that a
 * trampoline begins with `bti c` where the kernel checks that (what gcc compiled does
 * not). It leaves by `ret`, which needs no landing pad.
 *
 * Pointer authentication: the entry stands before the function's own `paciasp`, so that
 * neither return is signed yet. The original signs what we give back to it in x30, with
 * the stack pointer that it was entered with. What lies on the stack while a C side runs
 * is not signed, as in the kernel's own ftrace_caller; the C side signs its own return.
 *
 * Shadow call stack (x18): the function has pushed nothing before its entry, and we push
 * nothing: answering in its place leaves the shadow stack as the caller had it.
 *
 * Unwinding: while a C side runs there are two frame records, of the hooked function's
 * caller and of the hooked function, as ftrace_caller makes them.
 */
#ifndef SOLOIST_COMPAT_ARM64_TRAMPOLINE_H
#define SOLOIST_COMPAT_ARM64_TRAMPOLINE_H

#include <linux/linkage.h>
#include <linux/stringify.h>

#ifdef CONFIG_ARM64_BTI_KERNEL
#define SOL_LANDING_PAD	"	hint	#34\n"	/* bti c */
#else
#define SOL_LANDING_PAD
#endif

/*
 * From sp: a record (x29, return into the function), x0 to x8, eight bytes unused, a
 * record (x29, return to the caller).
 */
#define SOL_TRAMPOLINE_HEAD(name, test)				\
	"	.pushsection .text, \"ax\", @progbits\n"	\
	"	.balign	16\n"					\
	"	.type	" name ", %function\n"			\
	"	.globl	" name "\n"				\
	name ":\n"						\
	SOL_LANDING_PAD						\
	test							\
	"	mov	x10, x30\n"				\
	"	mov	x30, x9\n"				\
	"	ret	x10\n"					\
	"1:	sub	sp, sp, #112\n"				\
	"	stp	x29, x9, [sp, #96]\n"			\
	"	add	x29, sp, #96\n"				\
	"	stp	x29, x30, [sp]\n"			\
	"	mov	x29, sp\n"				\
	"	stp	x0, x1, [sp, #16]\n"			\
	"	stp	x2, x3, [sp, #32]\n"			\
	"	stp	x4, x5, [sp, #48]\n"			\
	"	stp	x6, x7, [sp, #64]\n"			\
	"	str	x8, [sp, #80]\n"

/* Arguments back, and on with the original. */
#define SOL_TRAMPOLINE_GO_ON					\
	"	ldp	x0, x1, [sp, #16]\n"			\
	"	ldp	x2, x3, [sp, #32]\n"			\
	"	ldp	x4, x5, [sp, #48]\n"			\
	"	ldp	x6, x7, [sp, #64]\n"			\
	"	ldr	x8, [sp, #80]\n"			\
	"	ldr	x10, [sp, #8]\n"			\
	"	ldp	x29, x30, [sp, #96]\n"			\
	"	add	sp, sp, #112\n"				\
	"	ret	x10\n"

#define SOL_TRAMPOLINE(name, c_side, test)			\
void name(void);						\
asm(SOL_TRAMPOLINE_HEAD(#name, test)				\
	"	bl	" #c_side "\n"				\
	"	movz	x10, #(" __stringify(SOL_PASS_WORD) " & 0xffff)\n"	\
	"	movk	x10, #(" __stringify(SOL_PASS_WORD) " >> 16), lsl #16\n"	\
	"	cmp	x0, x10\n"				\
	"	b.eq	2f\n"					\
	"	ldp	x29, x30, [sp, #96]\n"			\
	"	add	sp, sp, #112\n"				\
	"	ret\n"						\
	"2:\n"							\
	SOL_TRAMPOLINE_GO_ON					\
	SOL_TRAMPOLINE_TAIL(#name))

/* Argument @n of the original, 1 to 6, becomes what @c_side returns. */
#define SOL_TRAMPOLINE_ARG(name, c_side, test, n)		\
void name(void);						\
asm(SOL_TRAMPOLINE_HEAD(#name, test)				\
	"	bl	" #c_side "\n"				\
	"	str	x0, [sp, #(16 + 8 * (" #n " - 1))]\n"	\
	SOL_TRAMPOLINE_GO_ON					\
	SOL_TRAMPOLINE_TAIL(#name))

#endif /* SOLOIST_COMPAT_ARM64_TRAMPOLINE_H */
