/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All bits that we use in flags of the kernel's: of tasks and of address spaces.
 *
 *   task->atomic_flags  38       huge pages are off because of us, over exec
 *                       39       a fault failed for want of a page in colour
 *                       40..47   generation
 *                       48..63   group id, 0: none; the trampolines read it as one aligned word
 *   mm->flags           32       one of its tasks is coloured
 *                       33       huge pages are off because of us
 *                       40..47   generation
 *                       48..63   group id of the thread group leader, 0: none
 *
 * Linux copies task->atomic_flags to children and keeps them over exec; neither
 * fork nor exec copies these bits of mm->flags. Ids that an earlier load of the
 * module left behind have another generation and mean nothing.
 *
 * Locking: none; all changes are atomic.
 */
#ifndef SOLOIST_BITS_H
#define SOLOIST_BITS_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

#include "../compat/mm.h"

#define SOL_FLAG_GEN_SHIFT	40
#define SOL_FLAG_ID_SHIFT	48
#define SOL_FLAG_MASK		(~0ul << SOL_FLAG_GEN_SHIFT)

/* The bit that remembers SOL_MM_NO_THP over fork and exec. */
#define SOL_TASK_NO_THP		38

/* Of this task alone: neither its children nor what it executes has it. */
#define SOL_TASK_FAILED		39

/*
 * The address space's group is for faults that another task causes (ptrace,
 * userfaultfd, /proc/PID/mem); member.c sets it.
 */
#define SOL_MM_GEN_SHIFT	40
#define SOL_MM_ID_SHIFT		48

#define SOL_MM_STAY		32
#define SOL_MM_NO_THP		33	/* SOL_MMF_NO_THP is ours */

extern u8 sol_generation;	/* of this load, never 0 */

/**
 * group_id_of() - the group that a task is in
 * @task: any task; any context
 *
 * Return: the group's id; 0: none, or one of an earlier load.
 */
static inline u16 group_id_of(const struct task_struct *task)
{
	unsigned long f = READ_ONCE(task->atomic_flags);

	if ((u8)(f >> SOL_FLAG_GEN_SHIFT) != sol_generation)
		return 0;
	return f >> SOL_FLAG_ID_SHIFT;
}

/**
 * group_id_of_mm() - the group that an address space is in
 * @mm: any address space; any context
 *
 * Return: the group's id; 0: none, or one of an earlier load.
 */
static inline u16 group_id_of_mm(const struct mm_struct *mm)
{
	unsigned long f = READ_ONCE(*sol_mm_flags(mm));

	if ((u8)(f >> SOL_MM_GEN_SHIFT) != sol_generation)
		return 0;
	return f >> SOL_MM_ID_SHIFT;
}

/* Is one of the tasks of @mm coloured, so that its pages stay where they are? */
static inline bool sol_mm_stays(const struct mm_struct *mm)
{
	return test_bit(SOL_MM_STAY, sol_mm_flags(mm));
}

#endif /* SOLOIST_BITS_H */
