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
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/hash.h>
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

/**
 * struct space - an address space, referenced
 * @mm: it
 * @task: one that has it
 * @is_shared: other processes seem to have it, too
 * @is_unmerged: KSM does not merge its pages any more
 * @want: what all that have it require
 */
struct space {
	struct mm_struct *mm;
	struct task_struct *task;
	bool is_shared;
	bool is_unmerged;
	struct stay_want want;
};

#define SPACES		32
#define SEEN_BITS	8

/**
 * struct spaces - address spaces that are looked at together
 * @n: how many
 * @seen: a bit for the hash of each one that is shared
 * @at: they
 *
 * A look at all tasks of the machine is for all of them: anybody can make many that are shared.
 */
struct spaces {
	u32 n;
	DECLARE_BITMAP(seen, 1 << SEEN_BITS);
	struct space at[SPACES];
};

/* Those of the first of @n tasks. Return: of how many. */
static u32 spaces_find(struct spaces *s, struct task_struct **tasks, u32 n)
{
	struct mm_struct *mm;
	u32 i;

	s->n = 0;
	bitmap_zero(s->seen, 1 << SEEN_BITS);
	for (i = 0; i < n; i++) {
		mm = get_task_mm(tasks[i]);
		if (!mm)
			continue;
		if (s->n && s->at[s->n - 1].mm == mm) {
			mmput_async(mm);
			continue;
		}
		if (s->n == SPACES) {
			mmput_async(mm);
			break;
		}
		s->at[s->n++] = (struct space){ .mm = mm, .task = tasks[i] };
	}
	return i;
}

static void spaces_put(struct spaces *s)
{
	while (s->n)
		mmput_async(s->at[--s->n].mm);
}

/* Threads of one process, if nobody else has the address space. RCU. */
static void ask_process(struct spaces *s, struct space *at)
{
	struct task_struct *thread;

	at->is_shared = atomic_read(&at->mm->mm_users) > get_nr_threads(at->task) + 1;
	if (at->is_shared)
		__set_bit(hash_ptr(at->mm, SEEN_BITS), s->seen);
	else
		for_each_thread(at->task, thread)
			want_add(&at->want, thread);
}

static void ask_other(struct spaces *s, struct task_struct *thread)
{
	const struct mm_struct *mm = READ_ONCE(thread->mm);
	u32 i;

	if (!mm || !test_bit(hash_ptr(mm, SEEN_BITS), s->seen) || READ_ONCE(thread->vfork_done))
		return;
	for (i = 0; i < s->n; i++)
		if (s->at[i].mm == mm && s->at[i].is_shared)
			want_add(&s->at[i].want, thread);
}

static void spaces_ask(struct spaces *s)
{
	struct task_struct *process, *thread;
	u32 i;

	rcu_read_lock();
	for (i = 0; i < s->n; i++)
		ask_process(s, &s->at[i]);
	if (!bitmap_empty(s->seen, 1 << SEEN_BITS))
		for_each_process_thread(process, thread)
			ask_other(s, thread);
	rcu_read_unlock();
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

/* Merged pages stay merged until they are written; no more are merged. Return: it is done. */
static bool unmerge(struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);

	sol_mm_clear_merge_any(mm);
	if (!test_bit(MMF_VM_MERGEABLE, sol_mm_flags(mm)))
		return true;
	if (!sol_mmap_write_trylock(mm))
		return false;
	for_each_vma(vmi, vma) {
		if (vma->vm_flags & VM_MERGEABLE)
			vm_flags_clear(vma, VM_MERGEABLE);
	}
	mmap_write_unlock(mm);
	return true;
}

/* Return: how many are left. */
static u32 unmerge_some(struct spaces *s)
{
	u32 left = 0, i;

	for (i = 0; i < s->n; i++) {
		struct space *at = &s->at[i];

		if (at->want.stay && !at->is_unmerged)
			at->is_unmerged = unmerge(at->mm);
		left += at->want.stay && !at->is_unmerged;
	}
	return left;
}

/*
 * A fault may hold an address space's lock for as long as the server of a file likes. Areas of
 * tasks that keep us waiting stay as they are: the pages that they lose are their own.
 */
static void spaces_unmerge(struct spaces *s)
{
	u32 tries;

	for (tries = 0; unmerge_some(s) && tries < LOCK_MS; tries++) {
		if (fatal_signal_pending(current))
			return;
		usleep_range(USEC_PER_MSEC / 2, USEC_PER_MSEC);
	}
}

static void stay(struct mm_struct *mm, struct task_struct *task, const struct stay_want *want)
{
	if (want->stay)
		stay_begin(mm, task, want->huge_ok);
	else
		stay_end(mm, task);
}

/* The address spaces of the first @n of @tasks. A task that has executed meanwhile has another. */
static void spaces_apply(struct spaces *s, struct task_struct **tasks, u32 n)
{
	struct mm_struct *mm;
	u32 i, at, last = 0;

	for (i = 0; i < n; i++) {
		mm = get_task_mm(tasks[i]);
		if (!mm)
			continue;
		for (at = last; at < s->n && s->at[at].mm != mm; at++)
			;
		if (at < s->n) {
			stay(mm, tasks[i], &s->at[at].want);
			last = at;
		}
		mmput_async(mm);
	}
	spaces_unmerge(s);
}

void sol_stay_tasks(struct task_struct **tasks, u32 n)
{
	struct spaces s;
	u32 done;

	while (n) {
		done = spaces_find(&s, tasks, n);
		if (s.n) {
			spaces_ask(&s);
			spaces_apply(&s, tasks, done);
		}
		spaces_put(&s);
		tasks += done;
		n -= done;
		cond_resched();
	}
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
