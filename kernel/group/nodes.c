// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes: on which nodes a task may allocate, and whether its group's colours are on
 * one of them. cpuset.mems and memory policies stay in force for coloured tasks.
 *
 * Locking: task_lock() for a task's policy. Tasks are found under RCU.
 */
#include <linux/cpumask.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/topology.h>

#include "../command/status.h"
#include "../compat/nodes.h"
#include "group.h"
#include "member.h"

/* @node, or the nearest one that has memory. */
static int with_memory(int node)
{
	int nid, best = node;

	if (node_state(node, N_MEMORY))
		return node;
	for_each_node_state(nid, N_MEMORY)
		if (best == node ||
		    node_distance(node, nid) < node_distance(node, best))
			best = nid;
	return best;
}

u64 sol_member_near(struct task_struct *task)
{
	u64 nodes = 0, near = 0;
	int cpu, node;

	for_each_cpu(cpu, &task->cpus_mask) {
		node = cpu_to_node(cpu);
		if (node >= 0 && node < SOL_MAX_NODES)
			nodes |= BIT_ULL(node);
	}
	for (; nodes; nodes &= nodes - 1) {
		node = with_memory(__ffs64(nodes));
		if (node < SOL_MAX_NODES)
			near |= BIT_ULL(node);
	}
	return near;
}

nodemask_t sol_member_nodemask(struct task_struct *task)
{
	nodemask_t mask = NODE_MASK_ALL;

	task_lock(task);
	if (sol_task_mems(task))
		mask = *sol_task_mems(task);
	sol_policy_bind(task, &mask);
	task_unlock(task);
	return mask;
}

u64 sol_member_nodes(struct task_struct *task)
{
	nodemask_t mask = sol_member_nodemask(task);
	u64 nodes = 0;
	int node;

	for (node = 0; node < min(SOL_MAX_NODES, MAX_NUMNODES); node++)
		if (node_isset(node, mask))
			nodes |= BIT_ULL(node);
	return nodes;
}

static u64 cells_nodes(const struct sol_cells *cells)
{
	u64 nodes = 0;
	int i;

	for (i = 0; i < SOL_MAX_NODES; i++)
		if (cells->first[i] < cells->first[i + 1])
			nodes |= BIT_ULL(i);
	return nodes;
}

/* What a thread may use of the nodes that colours are on. */
struct fit {
	u64 colored;	/* nodes of the colours */
	u64 allowed;	/* nodes of the thread that was looked at last */
	pid_t tid;	/* 0: of another pid namespace */
};

static bool fits(struct fit *fit, struct task_struct *task)
{
	fit->allowed = sol_member_nodes(task);
	fit->tid = task_pid_vnr(task);
	return fit->allowed & fit->colored;
}

static int refuse_nodes(const struct sol_group *group, const struct fit *fit)
{
	unsigned long bits[SOL_LONGS(64)];
	char a[64], c[64];

	bitmap_from_u64(bits, fit->allowed);
	sol_list_print(bits, 64, a, sizeof(a));
	bitmap_from_u64(bits, fit->colored);
	sol_list_print(bits, 64, c, sizeof(c));
	return sol_deny(-EINVAL,
		"%s: cpuset.mems and memory policy let thread %d allocate on nodes %s, the group's colours are on %s",
		group->name, fit->tid, a, c);
}

/* NULL: it does not colour. */
static const struct sol_cells *cells_of(const struct sol_group *group)
{
	return rcu_dereference_protected(group->cells,
					 lockdep_is_held(&sol_group_mutex));
}

int sol_member_check_nodes(struct sol_group *group, struct task_struct *task)
{
	const struct sol_cells *cells = cells_of(group);
	struct fit fit = { .colored = cells ? cells_nodes(cells) : 0 };

	return !cells || fits(&fit, task) ? 0 : refuse_nodes(group, &fit);
}

int sol_member_check_process(struct sol_group *group, struct task_struct *process)
{
	const struct sol_cells *cells = cells_of(group);
	struct fit fit = { .colored = cells ? cells_nodes(cells) : 0 };
	struct task_struct *task;
	bool all = true;

	rcu_read_lock();
	for_each_thread(process, task) {
		all = !cells || !sol_member_is_outsider(group, task) || fits(&fit, task);
		if (!all)
			break;
	}
	rcu_read_unlock();
	return all ? 0 : refuse_nodes(group, &fit);
}

int sol_member_check_all(struct sol_group *group, const struct sol_cells *cells)
{
	struct fit fit = { .colored = cells ? cells_nodes(cells) : 0 };
	const struct sol_cells *old = cells_of(group);
	struct task_struct *process, *task;
	bool all = true;

	if (!cells || atomic_read(&group->refs) <= 1)
		return 0;
	/* Tasks lose no node if the group keeps all of its. A fault that grows a group comes here. */
	if (old && !(cells_nodes(old) & ~fit.colored))
		return 0;
	/* Any user may ask for itself (control/mmap_abi.c): no other task is looked at. */
	if (sol_member_is_alone(group))
		return fits(&fit, current) ? 0 : refuse_nodes(group, &fit);
	rcu_read_lock();
	for_each_process_thread(process, task) {
		all = group_id_of(task) != group->id || fits(&fit, task);
		if (!all)
			goto out;
	}
out:
	rcu_read_unlock();
	return all ? 0 : refuse_nodes(group, &fit);
}

bool sol_member_may_allocate(const struct sol_group *group,
			 struct task_struct *task)
{
	const struct sol_cells *cells = rcu_dereference(group->cells);
	u64 colored = cells ? cells_nodes(cells) : 0;
	int node;

	for (node = 0; node < min(SOL_MAX_NODES, MAX_NUMNODES); node++)
		if (colored & BIT_ULL(node) && sol_task_may_use(task, node))
			return true;
	return !colored;
}
