/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The nodes that a task may use: cpusets, without which kernels can be built, and memory
 * policies.
 */
#ifndef SOLOIST_COMPAT_NODES_H
#define SOLOIST_COMPAT_NODES_H

#include <linux/cpuset.h>
#include <linux/mempolicy.h>
#include <linux/mm_types.h>
#include <linux/nodemask.h>
#include <linux/sched.h>

/* Without it vma_alloc_folio() is a macro, and no hook tells a fault's page from another. */
#ifndef CONFIG_NUMA
#error "soloist needs CONFIG_NUMA=y, on a machine of one node too: vma_alloc_folio() allocates a fault's page"
#endif

/* Those of @task's cpuset; NULL: there are no cpusets. */
static inline const nodemask_t *sol_task_mems(const struct task_struct *task)
{
#ifdef CONFIG_CPUSETS
	return &task->mems_allowed;
#else
	return NULL;
#endif
}

static inline bool sol_task_may_use(const struct task_struct *task, int nid)
{
	const nodemask_t *mems = sol_task_mems(task);

	return !mems || node_isset(nid, *mems);
}

/* All that have memory; a hint, since its cpuset may be changing. */
static inline bool sol_task_may_use_all(const struct task_struct *task)
{
	const nodemask_t *mems = sol_task_mems(task);

	return !mems || nodes_subset(node_states[N_MEMORY], *mems);
}

/* Those of the current task's cpuset, which another task may be changing. */
static inline nodemask_t sol_stable_mems(void)
{
	nodemask_t mems = NODE_MASK_ALL;
#ifdef CONFIG_CPUSETS
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&current->mems_allowed_seq);
		mems = current->mems_allowed;
	} while (read_seqcount_retry(&current->mems_allowed_seq, seq));
#endif
	return mems;
}

/* The policy that holds in @vma for the current task, or NULL. */
static inline struct mempolicy *sol_policy_in(const struct vm_area_struct *vma)
{
	return vma->vm_policy ?: current->mempolicy;
}

/* Does a policy of @vma's own (mbind()) bind it to nodes? */
static inline bool sol_vma_is_bound(const struct vm_area_struct *vma)
{
	return vma->vm_policy && vma->vm_policy->mode == MPOL_BIND;
}

/* Take the nodes that @task's policy does not allow out of @mask. */
static inline void sol_policy_bind(const struct task_struct *task, nodemask_t *mask)
{
	if (task->mempolicy && task->mempolicy->mode == MPOL_BIND)
		nodes_and(*mask, *mask, task->mempolicy->nodes);
}

#endif /* SOLOIST_COMPAT_NODES_H */
