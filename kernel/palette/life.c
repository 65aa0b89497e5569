// SPDX-License-Identifier: GPL-2.0
/*
 * Life of a group: making it, removing it, and removing it by itself when its last
 * task goes.
 *
 * A group is found by its number in sol_groups[]. It begins with one reference, of its
 * directory or of the one who makes it for a task, and each task in it holds another.
 * reap.c says how it ends.
 *
 * Locking: sol_group_mutex guards sol_groups[] and the state of each group.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../command/status.h"
#include "../group/member.h"
#include "life.h"
#include "map.h"
#include "quota.h"
#include "reap.h"

static u32 last_id;

/* ---- Birth ---- */

static struct sol_group *group_alloc(const char *name)
{
	const struct sol_map *map = sol_map_in_use();
	size_t head = ALIGN(sizeof(struct sol_group), sizeof(long));
	size_t bits = sol_colors_bits_size(map);
	struct sol_group *group;
	u32 i;

	group = kvzalloc(head + bits, GFP_KERNEL);
	if (!group)
		return NULL;
	group->node = kvcalloc(map->n_nodes, sizeof(*group->node), GFP_KERNEL);
	group->stats = alloc_percpu(struct sol_group_stats);
	if (!group->node || !group->stats) {
		sol_group_free(group);
		return NULL;
	}
	for (i = 0; i < map->n_nodes; i++)
		group->node[i].dry_until = jiffies;
	group->grow_after = jiffies;
	sol_colors_attach(&group->colors, (void *)group + head);
	strscpy(group->name, name, sizeof(group->name));
	atomic_set(&group->refs, 1);
	return group;
}

/* A number that no group has, after the last one given; 0: none left. */
static u16 free_id(void)
{
	u32 i;

	for (i = 0; i < SOL_MAX_GROUPS; i++) {
		last_id = last_id % SOL_MAX_GROUPS + 1;
		if (!rcu_access_pointer(sol_groups[last_id]))
			return last_id;
	}
	return 0;
}

static struct sol_group *group_make(const char *name, bool implicit)
{
	struct sol_group *group;
	u16 id;

	lockdep_assert_held(&sol_group_mutex);
	if (!sol_map_in_use())
		return ERR_PTR(sol_deny(-ENXIO,
			"%s: no address map yet; write one to map first", name));
	id = free_id();
	if (!id)
		return ERR_PTR(sol_deny(-ENOSPC,
			"%s: %u groups exist, no number is left",
			name, SOL_MAX_GROUPS));
	group = group_alloc(name);
	if (!group)
		return ERR_PTR(sol_no_memory(name));
	group->id = id;
	group->implicit = implicit;
	*(implicit ? &sol_group_counts.implicit : &sol_group_counts.named) += 1;
	rcu_assign_pointer(sol_groups[id], group);
	return group;
}

/**
 * sol_group_new() - make a group without colours
 * @name: for messages
 * @implicit: not a directory's
 *
 * Return: the group with one reference, the caller's; or an ERR_PTR and words.
 */
struct sol_group *sol_group_new(const char *name, bool implicit)
{
	struct sol_group *group;

	mutex_lock(&sol_group_mutex);
	group = group_make(name, implicit);
	mutex_unlock(&sol_group_mutex);
	if (group != ERR_PTR(-ENOSPC))
		return group;

	sol_reap_now();		/* removed groups may have numbers */
	mutex_lock(&sol_group_mutex);
	group = group_make(name, implicit);
	mutex_unlock(&sol_group_mutex);
	return group;
}

/* ---- Removal ---- */

/**
 * sol_group_remove() - rmdir: colour no more, move all tasks out
 * @group: the caller still holds its reference
 */
void sol_group_remove(struct sol_group *group)
{
	mutex_lock(&sol_group_mutex);
	sol_group_retire(group);
	mutex_unlock(&sol_group_mutex);
	sol_member_evict(group);
}

/* ---- Ephemeral groups ---- */

static void (*forget_emptied)(struct sol_group *group);

void sol_group_when_emptied(void (*forget)(struct sol_group *group))
{
	forget_emptied = forget;
}

/* Retire a group whose last task is gone. Return: it, with a reference; or NULL. */
static struct sol_group *retire_emptied(void)
{
	struct sol_group *group, *found = NULL;
	u32 id;

	mutex_lock(&sol_group_mutex);
	for (id = 1; id <= SOL_MAX_GROUPS && !found; id++) {
		group = rcu_dereference_protected(sol_groups[id],
				lockdep_is_held(&sol_group_mutex));
		if (!group || !group->ephemeral || !group->had_tasks ||
		    sol_group_tasks(group))
			continue;
		sol_group_retire(group);
		sol_group_get(group);
		found = group;
	}
	mutex_unlock(&sol_group_mutex);
	return found;
}

/* The directory stays until its user removes it. */
static void emptied_fn(struct work_struct *work)
{
	struct sol_group *group;

	while ((group = retire_emptied())) {
		forget_emptied(group);
		sol_group_remove(group);
		sol_group_put(group);
	}
}

/*
 * Tasks that had gone before count for nothing. Tracepoints let tasks join without the
 * mutex: they take a reference first, and say so afterwards.
 */
static void set_ephemeral(struct sol_group *group, bool yes)
{
	WRITE_ONCE(group->had_tasks, false);
	WRITE_ONCE(group->ephemeral, yes);
	smp_mb();	/* pairs with the reference that a task takes first */
	if (sol_group_tasks(group))
		WRITE_ONCE(group->had_tasks, true);
}

/**
 * sol_group_set_ephemeral() - remove a group when its last task goes, or not
 * @group: of a directory, which stays and says that the group is gone
 * @yes: remove it; if no task is in it now, only after another one came
 *
 * Return: 0; -ENOENT and words if it was removed.
 */
int sol_group_set_ephemeral(struct sol_group *group, bool yes)
{
	int err;

	mutex_lock(&sol_group_mutex);
	err = sol_group_check_living(group);
	if (!err)
		set_ephemeral(group, yes);
	mutex_unlock(&sol_group_mutex);
	return err;
}

/* ---- Load and unload ---- */

/**
 * sol_group_init() - begin to follow tasks
 *
 * Return: 0 or an errno.
 */
int sol_group_init(void)
{
	INIT_WORK(&sol_emptied_work, emptied_fn);
	return sol_reap_init() ?: sol_member_init();
}

/**
 * sol_group_exit() - let go of all tasks, free all groups
 *
 * Nothing colours any more, no directory exists, no frame will be counted down
 * again, and supply, which looks groups up, has gone.
 */
void sol_group_exit(void)
{
	u32 id;

	sol_member_exit();
	sol_reap_exit();
	for (id = 1; id <= SOL_MAX_GROUPS; id++) {
		struct sol_group *group;

		group = rcu_dereference_protected(sol_groups[id], true);
		if (!group)
			continue;
		RCU_INIT_POINTER(sol_groups[id], NULL);
		sol_quota_end(group);
		sol_group_free(group);
	}
	sol_map_exit();
}
