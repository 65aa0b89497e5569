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
 * Tracepoints can't sleep: they only change the number of a task's group. A work item
 * brings the address space in line a moment later. It gets those tasks by a short list;
 * if more came than that holds, it looks at all.
 *
 * Locking: bindings_mutex for binding and unbinding. binding_lock, raw, for the cgroup
 * that a binding stands for at present, which tracepoints change. Readers use RCU.
 * moved_lock, raw, for the list of tasks.
 */
#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>

#include "../hook/probe.h"
#include "../command/status.h"
#include "cgroup.h"
#include "../group/group.h"
#include "../group/member.h"
#include "../group/tasks.h"

#ifndef CONFIG_CGROUPS
#error "soloist needs CONFIG_CGROUPS=y: a group is bound to cgroups"
#endif

/**
 * struct binding - of a group to a cgroup; a group may have several
 * @link: in the list of all
 * @next: in a list that no probe sees, before and after that
 * @group: the group
 * @cgrp: the cgroup at the path now, with a reference; NULL: there is none
 * @refused: tasks whose cpuset has no node of the group's colours, or that were being
 *	forked for too long
 * @stays: the group's new paths have it, too; bindings_mutex
 * @path: below the root of cgroup v2
 */
struct binding {
	struct list_head link;
	struct binding *next;
	struct sol_group *group;
	struct cgroup *cgrp;
	atomic64_t refused;
	bool stays;
	char path[];
};

static LIST_HEAD(bindings);
static u32 n_bindings;
static DEFINE_MUTEX(bindings_mutex);
static DEFINE_RAW_SPINLOCK(binding_lock);

/* ---- Address spaces of tasks that moved ---- */

#define MOVED_MAX	64

/* Of each process a thread, with a reference. */
static struct task_struct *moved[MOVED_MAX];
static u32 n_moved;
static bool more_moved;
static DEFINE_RAW_SPINLOCK(moved_lock);

static struct task_struct *next_moved(void)
{
	struct task_struct *task = NULL;

	raw_spin_lock_irq(&moved_lock);
	if (n_moved)
		task = moved[--n_moved];
	raw_spin_unlock_irq(&moved_lock);
	return task;
}

static void settle_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(settle_work, settle_fn);

static void settle_fn(struct work_struct *work)
{
	struct task_struct *task;

	while ((task = next_moved())) {
		sol_member_settle(task);
		put_task_struct(task);
	}
	if (!xchg(&more_moved, false) || !sol_member_settle_all())
		return;
	pr_warn_ratelimited("no memory to settle tasks that moved between cgroups; trying again\n");
	WRITE_ONCE(more_moved, true);
	schedule_delayed_work(&settle_work, HZ);
}

/* A thread of @task's process changed its group. Any context. */
static void settle_later(struct task_struct *task)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&moved_lock, flags);
	if (n_moved < MOVED_MAX)
		moved[n_moved++] = get_task_struct(task);
	else
		WRITE_ONCE(more_moved, true);
	raw_spin_unlock_irqrestore(&moved_lock, flags);
	schedule_delayed_work(&settle_work, 0);
}

/* ---- The group of a task's cgroup ---- */

/* The binding of the nearest bound cgroup of @task, or NULL. RCU. */
static struct binding *binding_of(struct task_struct *task)
{
	struct cgroup *in = task_dfl_cgroup(task), *at;
	struct binding *b, *nearest = NULL;
	int level = -1;

	list_for_each_entry_rcu(b, &bindings, link) {
		at = READ_ONCE(b->cgrp);
		if (!at || at->level <= level || !cgroup_is_descendant(in, at))
			continue;
		nearest = b;
		level = at->level;
	}
	return nearest;
}

/* One of the bindings of group @id; NULL: it is not bound. */
static struct binding *binding_for(u16 id)
{
	struct binding *b;

	list_for_each_entry_rcu(b, &bindings, link,
				lockdep_is_held(&bindings_mutex))
		if (b->group->id == id)
			return b;
	return NULL;
}

static bool is_root(const struct binding *b)
{
	return !b->path[1];
}

/* Shall a task of group @id be in @b's, NULL: in none, for its cgroup is? RCU. */
static bool shall_change(const struct binding *b, u16 id)
{
	if (b && b->group->id == id)
		return false;
	/* By hand it came into a group that is not bound. */
	if (!b || is_root(b))
		return b && !id ? true : !!binding_for(id);
	return true;
}

/* @task moved to another cgroup. RCU. Return: and so to another group. */
static bool follow(struct task_struct *task)
{
	struct binding *b = binding_of(task);
	u16 id = group_id_of(task);
	bool changed;

	/* A task that is being forked: probe_newtask() comes later. */
	if (sol_member_is_new(task) || !shall_change(b, id))
		return false;
	changed = sol_member_assign(task, b ? b->group->id : 0);
	if (!changed && b)
		atomic64_inc(&b->refused);
	return changed;
}

/* ---- Following cgroups: probes ---- */

/* Forked into another cgroup than its parent's: CLONE_INTO_CGROUP, or a race. */
static void probe_newtask(void *data, struct task_struct *child,
			  unsigned long clone_flags)
{
	struct binding *b;
	u16 id;

	if (!READ_ONCE(n_bindings))
		return;
	rcu_read_lock();
	if (task_dfl_cgroup(child) != task_dfl_cgroup(current)) {
		b = binding_of(child);
		id = group_id_of(child);
		if (shall_change(b, id))
			if (!sol_member_assign_child(child,
						     b ? b->group->id : 0,
						     clone_flags) && b)
				atomic64_inc(&b->refused);
	}
	rcu_read_unlock();
}

static void probe_attach(void *data, struct cgroup *to, const char *path,
			 struct task_struct *task, bool threadgroup)
{
	struct task_struct *thread;
	bool changed = false;

	if (!READ_ONCE(n_bindings) || to->root != &cgrp_dfl_root)
		return;
	rcu_read_lock();
	if (threadgroup)
		for_each_thread(task, thread)
			changed |= follow(thread);
	else
		changed = follow(task);
	rcu_read_unlock();
	if (changed)
		settle_later(task);
}

/* @b stands for @cgrp (NULL: for none) from now on. */
static void binding_set(struct binding *b, struct cgroup *cgrp)
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

static void probe_mkdir(void *data, struct cgroup *cgrp, const char *path)
{
	struct binding *b;

	if (cgrp->root != &cgrp_dfl_root)
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(b, &bindings, link)
		if (!strcmp(b->path, path))
			binding_set(b, cgrp);
	rcu_read_unlock();
}

static void probe_rmdir(void *data, struct cgroup *cgrp, const char *path)
{
	struct binding *b;

	rcu_read_lock();
	list_for_each_entry_rcu(b, &bindings, link)
		if (READ_ONCE(b->cgrp) == cgrp)
			binding_set(b, NULL);
	rcu_read_unlock();
}

static struct sol_probe probes[] = {
	/* Registered after member.c's, and called after it. */
	{ "task_newtask", probe_newtask },
	{ "cgroup_attach_task", probe_attach },
	{ "cgroup_mkdir", probe_mkdir },
	{ "cgroup_rmdir", probe_rmdir },
};

/* ---- Binding ---- */

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

static struct binding *binding_at(const char *path)
{
	struct binding *b;

	list_for_each_entry(b, &bindings, link)
		if (!strcmp(b->path, path))
			return b;
	return NULL;
}

static void free_all(struct binding *b)
{
	struct binding *next;

	for (; b; b = next) {
		next = b->next;
		binding_set(b, NULL);
		kfree(b);
	}
}

/* End those bindings of @group that don't stay. */
static void unbind(const struct sol_group *group)
{
	struct binding *b, *next, *gone = NULL;

	list_for_each_entry_safe(b, next, &bindings, link) {
		if (b->group != group || b->stays)
			continue;
		list_del_rcu(&b->link);
		WRITE_ONCE(n_bindings, n_bindings - 1);
		b->next = gone;
		gone = b;
	}
	if (gone)
		synchronize_rcu();	/* no probe sets ->cgrp any more */
	free_all(gone);
}

/* If the cgroup is made, or goes, meanwhile: probes see the list already. */
static void find_now(struct binding *b)
{
	struct cgroup *cgrp = cgroup_get_from_path(b->path);

	if (IS_ERR(cgrp))
		return;
	if (!READ_ONCE(b->cgrp))
		binding_set(b, cgrp);
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

	if (binding_of(task) != in->b || !shall_change(in->b, id))
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

	list_for_each_entry(in.b, &bindings, link)
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
	b = binding_at(path);
	if (b && b->group != group)
		return sol_deny(-EBUSY, "cgroup: %s is bound to group %s",
				is_root(b) ? EVERYTHING : path, b->group->name);
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
	list_add_rcu(&b->link, &bindings);
	WRITE_ONCE(n_bindings, n_bindings + 1);
	find_now(b);
}

static int bind(struct sol_group *group, char *paths, struct sol_tasks *room)
{
	struct binding *made = NULL, *b, *next;
	int err;

	list_for_each_entry(b, &bindings, link)
		b->stays = false;
	err = make_each(group, paths, &made);
	/* The thread that removes the group unbinds it afterwards, and waits for us. */
	if (!err && made)
		err = sol_group_check_living(group);
	if (err) {
		free_all(made);
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
	mutex_lock(&bindings_mutex);
	err = bind(group, paths, room);
	mutex_unlock(&bindings_mutex);
	sol_tasks_free(room);
	return err;
}

/* Needs no memory: its group goes. */
void sol_cgroup_unbind(struct sol_group *group)
{
	struct binding *b;

	mutex_lock(&bindings_mutex);
	list_for_each_entry(b, &bindings, link)
		b->stays = false;
	unbind(group);
	mutex_unlock(&bindings_mutex);
}

ssize_t sol_cgroup_show(const struct sol_group *group, char *page)
{
	const struct binding *b;
	ssize_t n = 0;

	mutex_lock(&bindings_mutex);
	list_for_each_entry(b, &bindings, link)
		if (b->group == group)
			n += sysfs_emit_at(page, n, "%s\n",
					   is_root(b) ? EVERYTHING : b->path);
	mutex_unlock(&bindings_mutex);
	return n;
}

bool sol_cgroup_present(const struct sol_group *group)
{
	const struct binding *b;
	bool any = false, all = true;

	rcu_read_lock();
	list_for_each_entry_rcu(b, &bindings, link) {
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
	list_for_each_entry_rcu(b, &bindings, link)
		if (b->group == group)
			n += atomic64_read(&b->refused);
	rcu_read_unlock();
	return n;
}

/* ---- Load and unload ---- */

int sol_cgroup_init(void)
{
	return sol_probes_add(probes, ARRAY_SIZE(probes));
}

/* No group has a directory any more, so that no group is bound. */
void sol_cgroup_exit(void)
{
	sol_probes_remove(probes, ARRAY_SIZE(probes));
	flush_delayed_work(&settle_work);
	cancel_delayed_work_sync(&settle_work);
}
