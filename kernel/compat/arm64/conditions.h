/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Conditions of trampolines, arm64; see ../trampoline.h. A condition may change x10,
 * x11 and x12, which nobody expects anything in at a function's entry; x9 and x30 are
 * the two returns, see trampoline.h.
 */
#ifndef SOLOIST_COMPAT_ARM64_CONDITIONS_H
#define SOLOIST_COMPAT_ARM64_CONDITIONS_H

#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/stringify.h>
#include <asm/memory.h>

/* Argument @n of the original, 1 to 6. */
#define SOL_ARGUMENT(n)		SOL_ARGUMENT_##n
#define SOL_ARGUMENT_1		"x0"
#define SOL_ARGUMENT_2		"x1"
#define SOL_ARGUMENT_3		"x2"
#define SOL_ARGUMENT_4		"x3"
#define SOL_ARGUMENT_5		"x4"
#define SOL_ARGUMENT_6		"x5"

#define SOL_IF_ANY						\
	"	b	1f\n"

#define SOL_IF_COLOR_ALLOC					\
	"	tbnz	w2, #30, 1f\n"

/* No immediate of a test instruction holds any two bits: a register does. */
#define SOL_UNLESS_WRITE					\
	"	movz	w10, #SOL_WRITE_IMM\n"			\
	"	tst	w2, w10\n"				\
	"	b.ne	4f\n"

#define SOL_WRITE_FLAGS(flags)						\
static void __used sol_write_flags(void)					\
{									\
	asm volatile(".set SOL_WRITE_IMM, %c0" : : "i" (flags));	\
}									\
static_assert((flags) <= U16_MAX)

/*
 * Group ids: the upper 24 bits of task->atomic_flags and of mm->flags. Of each the upper
 * half is read, as one aligned word, and what lies below the id is shifted out.
 */
#define SOL_TASK_OFFSETS(task_shift, mm_shift)				\
static void __used sol_task_offsets(void)					\
{									\
	asm volatile(".set SOL_TASK_ID, %c0" : : "i"			\
		     (offsetof(struct task_struct, atomic_flags) + 4));	\
	asm volatile(".set SOL_VMA_MM, %c0" : : "i"			\
		     (offsetof(struct vm_area_struct, vm_mm)));		\
	asm volatile(".set SOL_MM_ID, %c0" : : "i"			\
		     (offsetof(struct mm_struct, flags) + 4));		\
}									\
static_assert((task_shift) == 40 && (mm_shift) == 40)

/* The task or address space in x10 has an id in the word at @offset. */
#define SOL_IF_ID(offset)					\
	"	ldr	w10, [x10, #" offset "]\n"		\
	"	lsr	w10, w10, #8\n"				\
	"	cbnz	w10, 1f\n"

/* The kernel keeps the current task in sp_el0. */
#define SOL_IF_TASK						\
	"	mrs	x10, sp_el0\n"				\
	SOL_IF_ID("SOL_TASK_ID")

#define SOL_IF_MM_MAYBE(n)					\
	"	cbz	" SOL_ARGUMENT(n) ", 3f\n"		\
	"	ldr	x10, [" SOL_ARGUMENT(n) ", #SOL_VMA_MM]\n"	\
	"	cbz	x10, 3f\n"				\
	SOL_IF_ID("SOL_MM_ID")					\
	"3:\n"

#define SOL_IF_MM(n)						\
	"	ldr	x10, [" SOL_ARGUMENT(n) ", #SOL_VMA_MM]\n"	\
	SOL_IF_ID("SOL_MM_ID")

/*
 * The byte of the page in argument @n, in the array @owned of @n_frames bytes by frame
 * number, is not 0. A struct page has 64 bytes; the first of the array of them is that
 * of the frame where the linear map begins (page_to_pfn()), which the kernel finds at
 * boot.
 */
static_assert(sizeof(struct page) == 64);

/* Where the array of struct page begins, for SOL_IF_OWNED(). */
static void __used sol_vmemmap(void)
{
	asm volatile(".set SOL_VMEMMAP, %c0" : : "i" (VMEMMAP_START));
}

#define SOL_IF_OWNED(n, owned, n_frames)			\
	"	movz	x10, #:abs_g3:SOL_VMEMMAP\n"		\
	"	movk	x10, #:abs_g2_nc:SOL_VMEMMAP\n"		\
	"	movk	x10, #:abs_g1_nc:SOL_VMEMMAP\n"		\
	"	movk	x10, #:abs_g0_nc:SOL_VMEMMAP\n"		\
	"	sub	x10, " SOL_ARGUMENT(n) ", x10\n"		\
	"	lsr	x10, x10, #6\n"				\
	"	adrp	x11, memstart_addr\n"			\
	"	ldr	x11, [x11, #:lo12:memstart_addr]\n"	\
	"	add	x10, x10, x11, asr #" __stringify(PAGE_SHIFT) "\n"	\
	"	adrp	x11, " #n_frames "\n"			\
	"	ldr	x11, [x11, #:lo12:" #n_frames "]\n"	\
	"	cmp	x10, x11\n"				\
	"	b.hs	3f\n"					\
	"	adrp	x11, " #owned "\n"			\
	"	ldr	x11, [x11, #:lo12:" #owned "]\n"	\
	"	ldrb	w11, [x11, x10]\n"			\
	"	cbnz	w11, 1f\n"				\
	"3:\n"

#endif /* SOLOIST_COMPAT_ARM64_CONDITIONS_H */
