/* SPDX-License-Identifier: GPL-2.0 */
/* Address spaces: what differs between 6.1 and 6.12, and with PREEMPT_RT. */
#ifndef SOLOIST_COMPAT_MM_H
#define SOLOIST_COMPAT_MM_H

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/rwsem.h>
#include <linux/sched/coredump.h>
#include <linux/seqlock.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_clear(struct vm_area_struct *vma,
				  unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* 64 flags: a word, or since 6.18 a bitmap of a type of its own. */
static inline unsigned long *sol_mm_flags(const struct mm_struct *mm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return (unsigned long *)__mm_flags_get_bitmap(mm);
#else
	return (unsigned long *)&mm->flags;
#endif
}

/* No huge pages at all; since 6.18 there is "none but where advised" beside. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define SOL_MMF_NO_THP	MMF_DISABLE_THP_COMPLETELY
#else
#define SOL_MMF_NO_THP	MMF_DISABLE_THP
#endif

/* prctl(PR_SET_MEMORY_MERGE), from 6.4 on. */
static inline void sol_mm_clear_merge_any(struct mm_struct *mm)
{
#ifdef MMF_VM_MERGE_ANY
	clear_bit(MMF_VM_MERGE_ANY, sol_mm_flags(mm));
#endif
}

/*
 * mmap_write_lock() if it can be had at once; mmap_write_unlock() gives it back. 6.1 has
 * mmap_write_trylock(), later kernels do not. Where areas have locks, a writer also begins
 * a sequence if that is a seqcount_t; it was a plain number before.
 */
static inline bool sol_mmap_write_trylock(struct mm_struct *mm)
{
	if (!down_write_trylock(&mm->mmap_lock))
		return false;
#ifdef CONFIG_PER_VMA_LOCK
	if (__same_type(mm->mm_lock_seq, seqcount_t))
		do_raw_write_seqcount_begin((seqcount_t *)&mm->mm_lock_seq);
#endif
	return true;
}

/* When NUMA balancing looks at @mm again; no field without it (PREEMPT_RT). */
static inline void sol_mm_numa_scan_at(struct mm_struct *mm, unsigned long when)
{
#ifdef CONFIG_NUMA_BALANCING
	WRITE_ONCE(mm->numa_next_scan, when);
#endif
}

#endif /* SOLOIST_COMPAT_MM_H */
