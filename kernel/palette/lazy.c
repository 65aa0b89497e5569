// SPDX-License-Identifier: GPL-2.0
/*
 * What CPUs keep: address spaces that ended, and pages in batches.
 *
 * A CPU keeps the address space of the task that it ran last until it runs another
 * one (lazy TLB). The pages of a process that ended are free by then, but for the
 * root of its page tables. Where that is a single page, a group has it in colour, so
 * an idle CPU would keep a removed group, and its bank sets, for as long as it idles.
 *
 * A work item on each idle CPU enters the kernel's own address space for a moment,
 * and the CPU lets go of the other one. The asker's own CPU runs the asker, a kernel thread,
 * which keeps what that CPU idled with: it is asked, too, or nobody would ever ask it. An
 * isolated CPU, which a task may have for itself that just sleeps, is asked only if the process
 * has ended and a removed group has the root.
 *
 * The same work item empties the CPU's batches of pages that wait for their LRU lists. The
 * kernel itself can only empty those of all CPUs, isolated ones too.
 *
 * Locking: none. A CPU may begin a real-time task before it has run its work item, and
 * never run it: nobody waits for that without a limit.
 */
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched/isolation.h>
#include <linux/static_call.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../compat/workqueue.h"
#include "../frames/store.h"
#include "../group/group.h"
#include "../hook/table.h"
#include "lazy.h"

typedef int idle_cpu_fn(int cpu);
DEFINE_STATIC_CALL_NULL(sol_idle_cpu, idle_cpu_fn);

typedef struct task_struct *idle_task_fn(int cpu);
DEFINE_STATIC_CALL_NULL(sol_idle_task, idle_task_fn);
static bool knows_idle_task;

typedef void empty_batches_fn(void);
DEFINE_STATIC_CALL_NULL(sol_empty_batches, empty_batches_fn);
static bool knows_batches;

static struct mm_struct *kernel_mm;	/* NULL: this kernel hides it */
static DEFINE_PER_CPU(struct work_struct, let_go_work);
static DECLARE_WAIT_QUEUE_HEAD(let_go_done);
static atomic_t asked;

static void let_go_fn(struct work_struct *work)
{
	if (knows_batches)
		static_call(sol_empty_batches)();
	if (kernel_mm) {
		kthread_use_mm(kernel_mm);
		kthread_unuse_mm(kernel_mm);
	}
	if (atomic_dec_and_test(&asked))
		wake_up(&let_go_done);
}

/* Does a removed group have @page, the root of page tables? */
static bool is_of_removed(const struct page *page)
{
	bool is = false;
	u16 id;

	if (!sol_store_owns(page))
		return false;
	id = READ_ONCE(sol_frames_at(&sol_store, page_to_pfn(page))->link);
	sol_with_group(group, id)
		is = !atomic_read(&group->refs);
	return is;
}

static bool is_own(int cpu)
{
	return cpu == raw_smp_processor_id();
}

/*
 * Does @cpu, which runs no program, keep the address space of a process that has ended, and
 * by it a page of a removed group? A guess: without a reference the address space may be gone
 * when it is read.
 */
static bool keeps_removed(int cpu)
{
	struct task_struct *runs = is_own(cpu) ? current : static_call(sol_idle_task)(cpu);
	struct mm_struct *mm = runs ? READ_ONCE(runs->active_mm) : NULL;
	pgd_t *root;
	int users;

	return mm && mm != kernel_mm &&
	       !get_kernel_nofault(users, &mm->mm_users.counter) && !users &&
	       !get_kernel_nofault(root, &mm->pgd) && virt_addr_valid(root) &&
	       is_of_removed(virt_to_page(root));
}

static bool may_let_go(int cpu, const struct cpumask *unused)
{
	if (!is_own(cpu) && !static_call(sol_idle_cpu)(cpu))
		return false;
	return !cpu_is_isolated(cpu) || (knows_idle_task && keeps_removed(cpu));
}

static bool may_empty(int cpu, const struct cpumask *isolated)
{
	return !cpu_is_isolated(cpu) || (isolated && cpumask_test_cpu(cpu, isolated));
}

static void ask(bool (*may_ask)(int cpu, const struct cpumask *isolated),
		const struct cpumask *isolated, unsigned long timeout)
{
	int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		if (!may_ask(cpu, isolated))
			continue;
		atomic_inc(&asked);
		if (!queue_work_on(cpu, sol_bound_wq(), per_cpu_ptr(&let_go_work, cpu)))
			atomic_dec(&asked);	/* it is still asked */
	}
	cpus_read_unlock();
	wait_event_timeout(let_go_done, !atomic_read(&asked), timeout);
}

void sol_lazy_let_go(unsigned long timeout)
{
	if (kernel_mm)
		ask(may_let_go, NULL, timeout);
}

void sol_lazy_empty_batches(const struct cpumask *isolated, unsigned long timeout)
{
	if (knows_batches)
		ask(may_empty, isolated, timeout);
}

void sol_lazy_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		INIT_WORK(per_cpu_ptr(&let_go_work, cpu), let_go_fn);
	knows_batches = !sol_bind(sol_empty_batches, "lru_add_drain");
	knows_idle_task = !sol_bind(sol_idle_task, "idle_task");
	if (!sol_bind(sol_idle_cpu, "idle_cpu"))
		kernel_mm = sol_symbol("init_mm");
}

void sol_lazy_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		cancel_work_sync(per_cpu_ptr(&let_go_work, cpu));
}
