/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Conditions of trampolines, x86-64: does a call of a hooked function concern us?
 * A condition jumps to 1f if so, and falls through if not. It may change %rax,
 * %r10 and %r11; see trampoline.h.
 *
 * Conditions on tasks, address spaces and flags use offsets that are absolute
 * symbols of the assembler. A file with such a condition states
 * SOL_TASK_OFFSETS() or SOL_WRITE_FLAGS() once.
 */
#ifndef SOLOIST_COMPAT_X86_CONDITIONS_H
#define SOLOIST_COMPAT_X86_CONDITIONS_H

#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/version.h>

/* Argument @n of the original, 1 to 6. */
#define SOL_ARGUMENT(n)		SOL_ARGUMENT_##n
#define SOL_ARGUMENT_1		"%rdi"
#define SOL_ARGUMENT_2		"%rsi"
#define SOL_ARGUMENT_3		"%rdx"
#define SOL_ARGUMENT_4		"%rcx"
#define SOL_ARGUMENT_5		"%r8"
#define SOL_ARGUMENT_6		"%r9"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define SOL_CURRENT	"pcpu_hot"	/* its first member: current_task */
#else
#define SOL_CURRENT	"current_task"
#endif

/* Always. A condition, so that objtool sees what follows as reachable. */
#define SOL_IF_ANY						\
	"	testq	%rsp, %rsp\n"				\
	"	jnz	1f\n"

/* The third argument (mmap()'s prot) has bit 30, COLOR_ALLOC. */
#define SOL_IF_COLOR_ALLOC				\
	"	testl	$0x40000000, %edx\n"		\
	"	jnz	1f\n"

/* The third argument (a fault's flags) has a bit of SOL_WRITE_FLAGS(): not us. */
#define SOL_UNLESS_WRITE					\
	"	testl	$SOL_WRITE_IMM, %edx\n"			\
	"	jnz	4f\n"

/* The first argument (of an allocation) has __GFP_MOVABLE: not us. */
#define SOL_UNLESS_MOVABLE				\
	"	testb	$8, %dil\n"			\
	"	jnz	4f\n"

#define SOL_WRITE_FLAGS(write, unshare)					\
static void __used sol_write_flags(void)					\
{									\
	asm volatile(".set SOL_WRITE_IMM, %c0" : : "i" ((write) | (unshare)));	\
}									\
static_assert(true)

/*
 * Bytes of group ids: of task->atomic_flags from bit @task_shift on, and of
 * mm->flags from bit @mm_shift on.
 */
#define SOL_TASK_OFFSETS(task_shift, mm_shift)				\
static void __used sol_task_offsets(void)					\
{									\
	asm volatile(".set SOL_TASK_ID, %c0" : : "i"			\
		     (offsetof(struct task_struct, atomic_flags) +	\
		      (task_shift) / 8));				\
	asm volatile(".set SOL_VMA_MM, %c0" : : "i"			\
		     (offsetof(struct vm_area_struct, vm_mm)));		\
	asm volatile(".set SOL_MM_ID, %c0" : : "i"			\
		     (offsetof(struct mm_struct, flags) +		\
		      (mm_shift) / 8));					\
}									\
static_assert(true)

/* The current task has a group id. */
#define SOL_IF_TASK						\
	"	movq	%gs:" SOL_CURRENT "(%rip), %rax\n"	\
	"	cmpw	$0, SOL_TASK_ID(%rax)\n"		\
	"	jne	1f\n"

/* Or the address space that the vma in argument @n (may be NULL) belongs to has. */
#define SOL_IF_MM_MAYBE(n)						\
	"	testq	" SOL_ARGUMENT(n) ", " SOL_ARGUMENT(n) "\n"	\
	"	jz	3f\n"					\
	"	movq	SOL_VMA_MM(" SOL_ARGUMENT(n) "), %rax\n"	\
	"	testq	%rax, %rax\n"				\
	"	jz	3f\n"					\
	"	cmpw	$0, SOL_MM_ID(%rax)\n"			\
	"	jne	1f\n"					\
	"3:\n"

/* As SOL_IF_MM_MAYBE, where neither can be NULL. */
#define SOL_IF_MM(n)					\
	"	movq	SOL_VMA_MM(" SOL_ARGUMENT(n) "), %rax\n"	\
	"	cmpw	$0, SOL_MM_ID(%rax)\n"			\
	"	jne	1f\n"

#define SOL_IF_OWNED(n, owned)					\
	"	movq	" SOL_ARGUMENT(n) ", %rax\n"		\
	"	shrq	$6, %rax\n"				\
	"	addq	" #owned "(%rip), %rax\n"		\
	"	cmpq	" #owned "+8(%rip), %rax\n"		\
	"	jae	3f\n"					\
	"	cmpb	$0, (%rax)\n"				\
	"	jnz	1f\n"					\
	"3:\n"

#endif /* SOLOIST_COMPAT_X86_CONDITIONS_H */
