// SPDX-License-Identifier: GPL-2.0
/*
 * Cgroups: a group may be bound to cgroups (v2) by their paths. Tasks in such a cgroup or
 * below it join the group when it is bound. Later tasks join when they are moved there
 * (tracepoint cgroup_attach_task) or forked right into it (task_newtask). The nearest
 * bound cgroup decides. So services, slices and containers are coloured without
 * knowing of it.
 *
 * A task that is moved out of all bound cgroups leaves its group if that is bound to
 * one. It stays in a group that is not bound, in which somebody put it by hand.
 *
 * A path is bound and not a cgroup: the cgroup of a service goes when the service
 * stops, and another one comes at the same path. So the path need not exist yet.
 *
 * `everything-else` binds the root: then all other tasks are in that group. It takes tasks that
 * are in no group, and those that leave a bound cgroup. It takes none out of a group in
 * which somebody put it by hand.
 *
 *   binding.c   which bindings there are
 *   follow.c    tasks that move and are forked
 *
 * Locking: sol_bindings_mutex for binding and unbinding.
 */
#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../group/group.h"
#include "../group/member.h"
#include "../group/tasks.h"
#include "binding.h"
#include "cgroup.h"

#define TAKE_IN_ROUNDS	16

#define ROOT	"/"
#define EVERYTHING	"everything-else"	/* what users write for the root */
#define MOUNT	"/sys/fs/cgroup"	/* where nearly everybody has it */

/* Refuse paths of files, as people see cgroups: no task would ever run there. */
static int check_no_file(const char *path)
{
	const char *last = strrchr(path, '/');

	if (!strcmp(path, MOUNT) || !strncmp(path, MOUNT "/", strlen(MOUNT) + 1))
		return sol_deny(-EINVAL,
				"cgroup: '%.80s' is where a directory lies; the cgroup's own path is '%.80s', as in /proc/PID/cgroup",
				path, path + strlen(MOUNT));
	if (last && !strncmp(last, "/cgroup.", 8))
		return sol_deny(-EINVAL,
				"cgroup: '%.80s' is a file in a cgroup; the cgroup's path is '%.*s'",
				path, (int)min_t(size_t, last - path, 80), path);
	return 0;
}

static int path_check(const char *path)
{
	size_t len = strlen(path);

	if (len >= SOL_CGROUP_PATH)
		return sol_deny(-EINVAL, "cgroup: a path has %u bytes at most",
				SOL_CGROUP_PATH - 1);
	if (*path != '/' || len < 2 || path[len - 1] == '/' ||
	    strstr(path, "//") || strstr(path, "/../") || strstr(path, "/./"))
		return sol_deny(-EINVAL,
				"cgroup: '%.80s' is no path below the root of cgroup v2, such as /system.slice/x.service",
				path);
	return check_no_file(path);
}

/* End those bindings of @group that don't stay. */
static void unbind(const struct sol_group *group)
{
	struct binding *b, *next, *gone = NULL;

	list_for_each_entry_safe(b, next, &sol_bindings, link) {
		if (b->group != group || b->stays)
			continue;
		list_del_rcu(&b->link);
		WRITE_ONCE(sol_n_bindings, sol_n_bindings - 1);
		b->next = gone;
		gone = b;
	}
	if (gone)
		synchronize_rcu();	/* no probe sets ->cgrp any more */
	sol_bindings_free(gone);
}

/* If the cgroup is made, or goes, meanwhile: probes see the list already. */
static void find_now(struct binding *b)
{
	struct cgroup *cgrp = cgroup_get_from_path(b->path);

	if (IS_ERR(cgrp))
		return;
	if (!READ_ONCE(b->cgrp))
		sol_binding_set(b, cgrp);
	cgroup_put(cgrp);
}

/**
 * struct intake - tasks of cgroups join
 * @b: the binding of the cgroup whose tasks do now
 * @tasks: room for them
 * @naps: milliseconds to wait for forks, at most
 * @refused: tasks that can't, in the last round
 * @unborn: tasks that are being forked, in the last round
 */
struct intake {
	struct binding *b;
	struct sol_tasks *tasks;
	u32 naps;
	u32 refused;
	u32 unborn;
};

static bool should_join(struct task_struct *task, void *arg)
{
	struct intake *in = arg;
	u16 id = group_id_of(task);

	if (sol_binding_of(task) != in->b || !sol_binding_changes(in->b, id))
		return false;
	in->unborn += sol_member_is_new(task);
	return !sol_member_is_new(task);
}

/* Return: how many joined. */
static u32 take_in_once(struct intake *in)
{
	struct sol_tasks *tasks = in->tasks;
	u32 n, i;

	in->refused = 0;
	in->unborn = 0;
	sol_tasks_find(tasks, should_join, in);
	n = tasks->n;
	for (i = 0; i < n; i++)
		in->refused += sol_member_join(in->b->group, tasks->task[i]) == -EINVAL;
	sol_tasks_put(tasks);
	return n - in->refused;
}

/*
 * All tasks in the cgroup join; those that can't are counted. A task that had not joined
 * yet may have forked, and its child is in no group: so until nobody is left.
 *
 * A fork may last as long as its user likes. All that are under way, of all cgroups, are
 * waited for together, and count as tasks that can't.
 */
static void take_in(struct intake *in)
{
	u32 rounds = 0;

	for (;;) {
		if (take_in_once(in)) {
			if (++rounds == TAKE_IN_ROUNDS)
				break;
			cond_resched();
		} else if (in->unborn && in->naps) {
			in->naps--;
			usleep_range(500, 1000);
		} else {
			break;
		}
	}
	atomic64_add(in->refused + (in->naps ? 0 : in->unborn), &in->b->refused);
}

/* Those in all cgroups of @group do. */
static void take_in_all(struct sol_group *group, struct sol_tasks *room)
{
	struct intake in = { .tasks = room, .naps = SOL_NEW_TASK_TRIES };

	list_for_each_entry(in.b, &sol_bindings, link)
		if (in.b->group == group)
			take_in(&in);
}

/*
 * Paths are the machine's, as tracepoints and other tasks have them. In a container "/" is
 * the container's own cgroup.
 */
static int namespace_check(void)
{
	struct cgroup *root = cgroup_get_from_path(ROOT);

	if (IS_ERR(root))
		return 0;
	cgroup_put(root);
	if (root == &cgrp_dfl_root.cgrp)
		return 0;
	return sol_deny(-EINVAL,
			"cgroup: this process has a cgroup namespace of its own, in which paths mean others; write it on the host");
}

/* A binding of @group to @path, in front of *@made; or the one there is stays. */
static int make_one(struct sol_group *group, const char *path,
		    struct binding **made)
{
	struct binding *b;
	int err = namespace_check();

	if (!strcmp(path, EVERYTHING))
		path = ROOT;
	else
		err = err ?: path_check(path);
	if (err)
		return err;
	b = sol_binding_at(path);
	if (b && b->group != group)
		return sol_deny(-EBUSY, "cgroup: %s is bound to group %s",
				sol_binding_is_root(b) ? EVERYTHING : path, b->group->name);
	if (b) {
		b->stays = true;
		return 0;
	}
	for (b = *made; b; b = b->next)
		if (!strcmp(b->path, path))
			return 0;
	b = kzalloc(struct_size(b, path, strlen(path) + 1), GFP_KERNEL);
	if (!b)
		return sol_no_memory("cgroup");
	strscpy(b->path, path, strlen(path) + 1);
	b->group = group;
	b->next = *made;
	*made = b;
	return 0;
}

/* As make_one(), for each line of @paths, which is cut into words. */
static int make_each(struct sol_group *group, char *paths, struct binding **made)
{
	char *path;
	int err = 0;

	while (!err && (path = strsep(&paths, "\n"))) {
		path = strim(path);
		if (*path)
			err = make_one(group, path, made);
	}
	return err;
}

static void add(struct binding *b)
{
	list_add_rcu(&b->link, &sol_bindings);
	WRITE_ONCE(sol_n_bindings, sol_n_bindings + 1);
	find_now(b);
}

static int bind(struct sol_group *group, char *paths, struct sol_tasks *room)
{
	struct binding *made = NULL, *b, *next;
	int err;

	list_for_each_entry(b, &sol_bindings, link)
		b->stays = false;
	err = make_each(group, paths, &made);
	/* The thread that removes the group unbinds it afterwards, and waits for us. */
	if (!err && made)
		err = sol_group_check_living(group);
	if (err) {
		sol_bindings_free(made);
		return err;
	}
	unbind(group);
	for (b = made; b; b = next) {
		next = b->next;
		add(b);
	}
	take_in_all(group, room);
	return 0;
}

int sol_cgroup_bind(struct sol_group *group, char *paths)
{
	struct sol_tasks *room = sol_tasks_new_for_all();
	int err;

	if (!room)
		return sol_no_memory("cgroup");
	mutex_lock(&sol_bindings_mutex);
	err = bind(group, paths, room);
	mutex_unlock(&sol_bindings_mutex);
	sol_tasks_free(room);
	return err;
}

/* Needs no memory: its group goes. */
void sol_cgroup_unbind(struct sol_group *group)
{
	struct binding *b;

	mutex_lock(&sol_bindings_mutex);
	list_for_each_entry(b, &sol_bindings, link)
		b->stays = false;
	unbind(group);
	mutex_unlock(&sol_bindings_mutex);
}

ssize_t sol_cgroup_show(const struct sol_group *group, char *page)
{
	const struct binding *b;
	ssize_t n = 0;

	mutex_lock(&sol_bindings_mutex);
	list_for_each_entry(b, &sol_bindings, link)
		if (b->group == group)
			n += sysfs_emit_at(page, n, "%s\n",
					   sol_binding_is_root(b) ? EVERYTHING : b->path);
	mutex_unlock(&sol_bindings_mutex);
	return n;
}

bool sol_cgroup_present(const struct sol_group *group)
{
	const struct binding *b;
	bool any = false, all = true;

	rcu_read_lock();
	list_for_each_entry_rcu(b, &sol_bindings, link) {
		if (b->group != group)
			continue;
		any = true;
		all &= !!READ_ONCE(b->cgrp);
	}
	rcu_read_unlock();
	return any && all;
}

u64 sol_cgroup_refused(const struct sol_group *group)
{
	const struct binding *b;
	u64 n = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(b, &sol_bindings, link)
		if (b->group == group)
			n += atomic64_read(&b->refused);
	rcu_read_unlock();
	return n;
}
