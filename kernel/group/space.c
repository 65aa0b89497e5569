// SPDX-License-Identifier: GPL-2.0
/*
 * Address spaces: flags that keep Linux from moving, merging or replacing pages in
 * colour.
 *
 *   Huge pages      SOL_MMF_NO_THP, unless the colours consist of whole huge
 *                   blocks. Linux copies the flag on fork and exec.
 *   NUMA balancing  the next scan is put off by half of all time. Linux resets that
 *                   on fork and exec; two tracepoints put it off again.
 *   KSM             areas that are marked for merging are unmarked, and ksmd drops
 *                   the address space. New requests are in keep/move.c.
 *
 * An address space belongs to all its threads, which may be in different groups, and to
 * those of other processes that share it (CLONE_VM). Its pages stay if one of them is
 * coloured; it may have huge pages if all that are coloured may. A child of vfork(), which
 * soon has its own, says nothing of its parent's.
 *
 * A task that had switched huge pages off itself (PR_SET_THP_DISABLE) finds them off
 * afterwards: SOL_MM_NO_THP in mm->flags says that it was us. Neither fork nor exec
 * copies that bit, so SOL_TASK_NO_THP in task->atomic_flags, which both keep, carries
 * it over.
 *
 * Locking: flags are atomic bits. mmap_lock for areas of KSM, if it can be had soon.
 * Probes touch nothing but flags. The last reference to an address space is put by a
 * worker of the kernel: closing a task's files may wait for their server.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "../compat/mm.h"
#include "group.h"
#include "../hook/probe.h"
#include "space.h"

#define LOCK_MS	50

/* Requirements of the groups of an address space's threads. */
struct stay_want {
	bool stay;
	bool huge_ok;
};

/* A group without colours, which may limit bandwidth alone, wants nothing. */
static void want_add(struct stay_want *want, struct task_struct *task)
{
	sol_with_group(group, group_id_of(task)) {
		if (!rcu_access_pointer(group->cells))
			continue;
		want->huge_ok = READ_ONCE(group->huge_ok) &&
				(!want->stay || want->huge_ok);
		want->stay = true;
	}
}

static void want_add_others(struct stay_want *want, const struct mm_struct *mm)
{
	struct task_struct *process, *thread;

	for_each_process_thread(process, thread)
		if (READ_ONCE(thread->mm) == mm && !READ_ONCE(thread->vfork_done))
			want_add(want, thread);
}

/* Of all that have @mm, which is @task's and referenced by the caller. */
static struct stay_want want_of_all(struct task_struct *task, struct mm_struct *mm)
{
	struct stay_want want = { 0 };
	struct task_struct *thread;

	rcu_read_lock();
	if (atomic_read(&mm->mm_users) > get_nr_threads(task) + 1)
		want_add_others(&want, mm);
	else
		for_each_thread(task, thread)
			want_add(&want, thread);
	rcu_read_unlock();
	return want;
}

static void thp_off(struct mm_struct *mm, struct task_struct *task)
{
	if (!test_and_set_bit(SOL_MMF_NO_THP, sol_mm_flags(mm)) ||
	    test_bit(SOL_TASK_NO_THP, &task->atomic_flags))
		set_bit(SOL_MM_NO_THP, sol_mm_flags(mm));
	if (test_bit(SOL_MM_NO_THP, sol_mm_flags(mm)))
		set_bit(SOL_TASK_NO_THP, &task->atomic_flags);
}

static void thp_on(struct mm_struct *mm, struct task_struct *task)
{
	if (test_and_clear_bit(SOL_MM_NO_THP, sol_mm_flags(mm)))
		clear_bit(SOL_MMF_NO_THP, sol_mm_flags(mm));
	clear_bit(SOL_TASK_NO_THP, &task->atomic_flags);
}

static void stay_begin(struct mm_struct *mm, struct task_struct *task,
		       bool huge_ok)
{
	set_bit(SOL_MM_STAY, sol_mm_flags(mm));
	if (huge_ok)
		thp_on(mm, task);
	else
		thp_off(mm, task);
	sol_mm_numa_scan_at(mm, jiffies + MAX_JIFFY_OFFSET);
}

static void stay_end(struct mm_struct *mm, struct task_struct *task)
{
	thp_on(mm, task);
	if (test_and_clear_bit(SOL_MM_STAY, sol_mm_flags(mm)))
		sol_mm_numa_scan_at(mm, jiffies);
}

/* A fault may hold the lock for as long as the server of a file likes. */
static bool lock_soon(struct mm_struct *mm)
{
	int tries = LOCK_MS;

	while (!sol_mmap_write_trylock(mm)) {
		if (!tries--)
			return false;
		usleep_range(USEC_PER_MSEC / 2, USEC_PER_MSEC);
	}
	return true;
}

/*
 * Merged pages stay merged until they are written; no more are merged. Areas of a task
 * that keeps us waiting stay as they are: the pages that it loses are its own.
 */
static void stay_unmerge(struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);

	sol_mm_clear_merge_any(mm);
	if (!test_bit(MMF_VM_MERGEABLE, sol_mm_flags(mm)) || !lock_soon(mm))
		return;
	for_each_vma(vmi, vma) {
		if (vma->vm_flags & VM_MERGEABLE)
			vm_flags_clear(vma, VM_MERGEABLE);
	}
	mmap_write_unlock(mm);
}

static void stay(struct mm_struct *mm, struct task_struct *task, const struct stay_want *want)
{
	if (want->stay)
		stay_begin(mm, task, want->huge_ok);
	else
		stay_end(mm, task);
}

/* All threads are asked once for those of a process that follow each other. */
void sol_stay_tasks(struct task_struct **tasks, u32 n)
{
	struct mm_struct *mm = NULL, *next;
	struct stay_want want;
	bool is_new;
	u32 i;

	for (i = 0; i < n; i++) {
		next = get_task_mm(tasks[i]);
		if (!next)
			continue;
		is_new = next != mm;
		if (is_new)
			want = want_of_all(tasks[i], next);
		stay(next, tasks[i], &want);
		if (is_new && want.stay)
			stay_unmerge(next);
		if (mm)
			mmput_async(mm);
		mm = next;
	}
	if (mm)
		mmput_async(mm);
}

static void stay_new_mm(struct task_struct *task)
{
	struct stay_want want = { 0 };

	want_add(&want, task);
	if (want.stay && task->mm)
		stay_begin(task->mm, task, want.huge_ok);
}

/* A child of an uncoloured thread, with memory of its own: nobody is coloured in it. */
static void plain_child(struct task_struct *parent, struct task_struct *child)
{
	if (parent->mm && child->mm && parent->mm != child->mm &&
	    test_bit(SOL_MM_NO_THP, sol_mm_flags(parent->mm)))
		clear_bit(SOL_MMF_NO_THP, sol_mm_flags(child->mm));
}

/*
 * A fork also resets the scan time of the *parent's* mm, when that has one
 * user: init_numa_balancing() runs before the child has its own.
 */
static void probe_fork(void *data, struct task_struct *parent,
		       struct task_struct *child)
{
	if (!sol_group_has_colors(group_id_of(child))) {
		plain_child(parent, child);
		return;
	}
	if (parent->mm != child->mm)
		stay_new_mm(child);
	if (parent->mm && sol_mm_stays(parent->mm))
		sol_mm_numa_scan_at(parent->mm, jiffies + MAX_JIFFY_OFFSET);
}

static void space_exec(void *data, struct task_struct *task, pid_t old_pid,
		       struct linux_binprm *bprm)
{
	if (group_id_of(task))
		stay_new_mm(task);
}

static struct sol_probe stay_probes[] = {
	{ "sched_process_fork", probe_fork },
	{ "sched_process_exec", space_exec },
};

/* Clear what address spaces and tasks still have of us. */
static void stay_forget_all(void)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task) {
		task_lock(task);
		if (task->mm)
			stay_end(task->mm, task);
		task_unlock(task);
	}
	rcu_read_unlock();
}

int sol_stay_init(void)
{
	return sol_probes_add(stay_probes, ARRAY_SIZE(stay_probes));
}

void sol_stay_exit(void)
{
	sol_probes_remove(stay_probes, ARRAY_SIZE(stay_probes));
	stay_forget_all();
}
