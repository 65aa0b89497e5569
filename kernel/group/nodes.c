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

static int refuse_nodes(const struct sol_group *group, pid_t tid, u64 allowed,
			u64 colored)
{
	unsigned long bits[SOL_LONGS(64)];
	char a[64], c[64];

	bitmap_from_u64(bits, allowed);
	sol_list_print(bits, 64, a, sizeof(a));
	bitmap_from_u64(bits, colored);
	sol_list_print(bits, 64, c, sizeof(c));
	return sol_deny(-EINVAL,
		"%s: cpuset.mems and memory policy let thread %d allocate on nodes %s, the group's colours are on %s",
		group->name, tid, a, c);
}

int sol_member_check_nodes(struct sol_group *group, struct task_struct *task)
{
	struct sol_cells *cells;
	u64 allowed, colored;

	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	if (!cells)
		return 0;
	allowed = sol_member_nodes(task);
	colored = cells_nodes(cells);
	if (allowed & colored)
		return 0;
	return refuse_nodes(group, task_pid_vnr(task), allowed, colored);
}

int sol_member_check_all(struct sol_group *group, const struct sol_cells *cells)
{
	struct task_struct *process, *task;
	u64 colored, allowed = 0;
	pid_t tid = 0;

	if (!cells || atomic_read(&group->refs) <= 1)
		return 0;
	colored = cells_nodes(cells);
	rcu_read_lock();
	for_each_process_thread(process, task) {
		if (group_id_of(task) != group->id)
			continue;
		allowed = sol_member_nodes(task);
		if (!(allowed & colored)) {
			tid = task_pid_vnr(task);
			goto out;
		}
	}
out:
	rcu_read_unlock();
	return tid ? refuse_nodes(group, tid, allowed, colored) : 0;
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
