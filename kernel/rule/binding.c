// SPDX-License-Identifier: GPL-2.0
/*
 * Bindings of groups to cgroups.
 *
 * Locking: sol_bindings_mutex for the list; readers use RCU. binding_lock, raw, for the cgroup
 * that a binding stands for at present, which tracepoints change.
 */
#include <linux/cgroup.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "../group/group.h"
#include "binding.h"

#ifndef CONFIG_CGROUPS
#error "soloist needs CONFIG_CGROUPS=y: a group is bound to cgroups"
#endif

LIST_HEAD(sol_bindings);
u32 sol_n_bindings;
DEFINE_MUTEX(sol_bindings_mutex);
static DEFINE_RAW_SPINLOCK(binding_lock);

struct binding *sol_binding_of(struct task_struct *task)
{
	struct cgroup *in = task_dfl_cgroup(task), *at;
	struct binding *b, *nearest = NULL;
	int level = -1;

	list_for_each_entry_rcu(b, &sol_bindings, link) {
		at = READ_ONCE(b->cgrp);
		if (!at || at->level <= level || !cgroup_is_descendant(in, at))
			continue;
		nearest = b;
		level = at->level;
	}
	return nearest;
}

struct binding *sol_binding_for(u16 id)
{
	struct binding *b;

	list_for_each_entry_rcu(b, &sol_bindings, link,
				lockdep_is_held(&sol_bindings_mutex))
		if (b->group->id == id)
			return b;
	return NULL;
}

bool sol_binding_is_else(struct task_struct *task, u16 id)
{
	const struct binding *b;
	bool is;

	rcu_read_lock();
	b = sol_binding_of(task);
	is = b && sol_binding_is_root(b) && b->group->id == id;
	rcu_read_unlock();
	return is;
}

bool sol_binding_changes(const struct binding *b, u16 id)
{
	if (b && b->group->id == id)
		return false;
	/* By hand it came into a group that is not bound. */
	if (!b || sol_binding_is_root(b))
		return b && !id ? true : !!sol_binding_for(id);
	return true;
}

struct binding *sol_binding_at(const char *path)
{
	struct binding *b;

	list_for_each_entry(b, &sol_bindings, link)
		if (!strcmp(b->path, path))
			return b;
	return NULL;
}

void sol_binding_set(struct binding *b, struct cgroup *cgrp)
{
	struct cgroup *before;
	unsigned long flags;

	if (cgrp)
		cgroup_get(cgrp);
	raw_spin_lock_irqsave(&binding_lock, flags);
	before = b->cgrp;
	WRITE_ONCE(b->cgrp, cgrp);
	raw_spin_unlock_irqrestore(&binding_lock, flags);
	if (before)
		cgroup_put(before);
}

void sol_bindings_free(struct binding *b)
{
	struct binding *next;

	for (; b; b = next) {
		next = b->next;
		sol_binding_set(b, NULL);
		kfree(b);
	}
}
