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

/* Two bits: a write fault, which is the common one, passes after one instruction. */
#define SOL_UNLESS_WRITE					\
	"	tbnz	w2, #0, 4f\n"				\
	"	tbnz	w2, #10, 4f\n"

#define SOL_UNLESS_MOVABLE					\
	"	tbnz	w0, #3, 4f\n"

#define SOL_WRITE_FLAGS(write, unshare)				\
static_assert((write) == 1 << 0 && (unshare) == 1 << 10)

/* Group ids: the highest 16 bits of task->atomic_flags and of mm->flags. */
#define SOL_TASK_OFFSETS(task_shift, mm_shift)				\
static void __used sol_task_offsets(void)				\
{									\
	asm volatile(".set SOL_TASK_ID, %c0" : : "i"			\
		     (offsetof(struct task_struct, atomic_flags) + 6));	\
	asm volatile(".set SOL_VMA_MM, %c0" : : "i"			\
		     (offsetof(struct vm_area_struct, vm_mm)));		\
	asm volatile(".set SOL_MM_ID, %c0" : : "i"			\
		     (offsetof(struct mm_struct, flags) + 6));		\
}									\
static_assert((task_shift) == 48 && (mm_shift) == 48)

/* The task or address space in x10 has an id at @offset. */
#define SOL_IF_ID(offset)					\
	"	ldrh	w10, [x10, #" offset "]\n"		\
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

#define SOL_IF_OWNED(n, owned)					\
	"	adrp	x11, " #owned "\n"			\
	"	add	x11, x11, :lo12:" #owned "\n"		\
	"	ldp	x11, x12, [x11]\n"			\
	"	add	x10, x11, " SOL_ARGUMENT(n) ", lsr #6\n"	\
	"	cmp	x10, x12\n"				\
	"	b.hs	3f\n"					\
	"	ldrb	w10, [x10]\n"				\
	"	cbnz	w10, 1f\n"				\
	"3:\n"

#endif /* SOLOIST_COMPAT_ARM64_CONDITIONS_H */
