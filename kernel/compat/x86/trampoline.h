/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trampolines of direct hooks, x86-64; see ../trampoline.h. On entry the stack holds
 * the return into the hooked function (behind its patched entry) and above it the
 * return to that function's caller. To go on with the original, return; to answer in
 * its place, drop one address.
 *
 * Direct targets need no ENDBR: they are called, not jumped to. All argument
 * registers are kept for the original; %rax and %r10, %r11 are free at a
 * function's entry.
 */
#ifndef SOLOIST_COMPAT_X86_TRAMPOLINE_H
#define SOLOIST_COMPAT_X86_TRAMPOLINE_H

#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/stringify.h>
#include <asm/nospec-branch.h>
#include <asm/unwind_hints.h>

#ifndef CALL_DEPTH_ACCOUNT
#define CALL_DEPTH_ACCOUNT ""
#endif

#define SOL_TRAMPOLINE_HEAD(name, test)				\
	"	.pushsection .text, \"ax\", @progbits\n"	\
	"	.balign	16\n"					\
	"	.type	" name ", @function\n"			\
	"	.globl	" name "\n"				\
	name ":\n"						\
	ANNOTATE_NOENDBR					\
	test							\
	"	" ASM_RET "\n"					\
	"1:	pushq	%rbp\n"					\
	"	movq	%rsp, %rbp\n"				\
	CALL_DEPTH_ACCOUNT					\
	"	pushq	%rdi\n"					\
	"	pushq	%rsi\n"					\
	"	pushq	%rdx\n"					\
	"	pushq	%rcx\n"					\
	"	pushq	%r8\n"					\
	"	pushq	%r9\n"

#define SOL_TRAMPOLINE_POP					\
	"	popq	%r9\n"					\
	"	popq	%r8\n"					\
	"	popq	%rcx\n"					\
	"	popq	%rdx\n"					\
	"	popq	%rsi\n"					\
	"	popq	%rdi\n"					\
	"	popq	%rbp\n"

#define SOL_TRAMPOLINE(name, c_side, test)			\
void name(void);						\
asm(SOL_TRAMPOLINE_HEAD(#name, test)				\
	"	call	" #c_side "\n"				\
	"	cmpq	$" __stringify(SOL_PASS_WORD) ", %rax\n"	\
	"	je	2f\n"					\
	"	leave\n"					\
	"	addq	$8, %rsp\n"				\
	SOL_UNWIND_FUNC						\
	"	" ASM_RET "\n"					\
	"2:\n"							\
	SOL_TRAMPOLINE_POP					\
	"	" ASM_RET "\n"					\
	SOL_TRAMPOLINE_TAIL(#name))

/* Argument @n of the original, 1 to 6, becomes what @c_side returns. */
#define SOL_TRAMPOLINE_ARG(name, c_side, test, n)		\
void name(void);						\
asm(SOL_TRAMPOLINE_HEAD(#name, test)				\
	"	call	" #c_side "\n"				\
	"	movq	%rax, -8*" #n "(%rbp)\n"		\
	SOL_TRAMPOLINE_POP					\
	"	" ASM_RET "\n"					\
	SOL_TRAMPOLINE_TAIL(#name))

/* After the dropped address the frame is that of the hooked function. */
#define SOL_UNWIND_FUNC UNWIND_HINT_FUNC

#endif /* SOLOIST_COMPAT_X86_TRAMPOLINE_H */
