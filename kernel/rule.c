// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: colours by user and path, at exec (CAMC 3.4).
 *
 * A direct hook on alloc_bprm sees every execve() before its new address space
 * exists, so that even the pages of its arguments are in colour. If a rule
 * matches, the process gets an implicit group of its own with free colours on
 * the nodes of the CPUs it may use, and the old program's pages stay where they
 * are. Whether the exec went well is known when the task returns to user space:
 * task work then compares self_exec_id, which only a success has changed, and
 * if it has not, puts the task back where it was.
 *
 * What is matched is the path that was executed, so of a script the script and
 * not its interpreter: once as given, if absolute, and once with all symbolic
 * links resolved. It is resolved once more by the exec itself; a file renamed
 * between the two gets colours by its old name, which is no matter of security.
 *
 * Differs from the paper: the path pattern is a glob in a rule, the user need
 * not register if the rule names it, and children that execute something that
 * no rule matches stay in their parent's group. A task in a group that someone
 * made by hand stays there.
 *
 * Locking: rule_mutex guards the rules and registered users; sol_group_mutex
 * nests inside. tries_lock guards the list of execs under way. Unloading waits
 * by an SRCU of this file's own, since sol_busy may be waited for under
 * sol_group_mutex.
 */
#define pr_fmt(fmt) "soloist: " fmt

#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/glob.h>
#include <linux/namei.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/uidgid.h>
#include "compat/trampoline.h"
#include "group.h"
#include "hook.h"
#include "member.h"
#include "parts.h"
#include "rule.h"
#include "status.h"

#define MAX_USERS	1024

/* A user who registered with CAMC's mmap() call. */
struct coloring_user {
	struct list_head link;
	kuid_t uid;
	u32 colors;
};

/* An exec of which we don't know yet whether it succeeds. */
struct exec_try {
	struct callback_head work;
	struct list_head link;
	struct task_struct *task;
	struct sol_group *before;	/* referenced, or NULL */
	u64 exec_id;
};

DEFINE_STATIC_SRCU(execs);
static DEFINE_MUTEX(rule_mutex);
static LIST_HEAD(rules);
static LIST_HEAD(users);
static u32 n_rules, n_users;

static DEFINE_SPINLOCK(tries_lock);
static LIST_HEAD(tries);
static atomic_t n_tries = ATOMIC_INIT(0);

/* ---- The list of rules ---- */

void sol_rule_lock(void)
{
	mutex_lock(&rule_mutex);
}

void sol_rule_unlock(void)
{
	mutex_unlock(&rule_mutex);
}

void sol_rule_add(struct sol_rule *rule)
{
	mutex_lock(&rule_mutex);
	list_add_tail(&rule->link, &rules);
	n_rules++;
	mutex_unlock(&rule_mutex);
}

void sol_rule_del(struct sol_rule *rule)
{
	mutex_lock(&rule_mutex);
	list_del(&rule->link);
	n_rules--;
	mutex_unlock(&rule_mutex);
}

u32 sol_rule_count(void)
{
	return READ_ONCE(n_rules);
}

/* ---- Registered users ---- */

static struct coloring_user *user_find(kuid_t uid)
{
	struct coloring_user *user;

	list_for_each_entry(user, &users, link)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static int user_add(kuid_t uid, u32 n)
{
	struct coloring_user *user;

	if (n_users >= MAX_USERS)
		return sol_deny(-ENOSPC, "mmap: %u users are registered, no more fit",
				n_users);
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return sol_deny(-ENOMEM, "mmap: no memory");
	user->uid = uid;
	user->colors = n;
	list_add(&user->link, &users);
	n_users++;
	return 0;
}

static void user_del(struct coloring_user *user)
{
	list_del(&user->link);
	n_users--;
	kfree(user);
}

static int user_register(kuid_t uid, u32 n)
{
	const struct sol_map *map = sol_group_map();
	struct coloring_user *user = user_find(uid);

	if (!n && !user)
		return sol_deny(-ENOENT, "mmap: this user is not registered");
	if (!n) {
		user_del(user);
		return 0;
	}
	if (!map || n > map->n_colors)
		return sol_deny(-EINVAL, "mmap: %u colours, but %s has %u", n,
				map ? map->name : "no map is set and the machine",
				map ? map->n_colors : 0);
	if (!user)
		return user_add(uid, n);
	user->colors = n;
	return 0;
}

/**
 * sol_rule_register() - CAMC: the coloring_user list
 * @uid: real user id
 * @n: bank sets for each of its processes; 0: take the user off
 *
 * Return: 0, -ENOENT, -EINVAL, -ENOSPC or -ENOMEM; words if refused.
 */
int sol_rule_register(kuid_t uid, u32 n)
{
	int err;

	mutex_lock(&rule_mutex);
	mutex_lock(&sol_group_mutex);
	err = user_register(uid, n);
	mutex_unlock(&sol_group_mutex);
	mutex_unlock(&rule_mutex);
	return err;
}

u32 sol_rule_registered(void)
{
	return READ_ONCE(n_users);
}

/* ---- Matching ---- */

/* Bank sets for the current user by @rule; 0: not for this user. */
static u32 rule_colors(const struct sol_rule *rule)
{
	struct coloring_user *user;

	switch (rule->who) {
	case SOL_RULE_ANY:
		return rule->colors;
	case SOL_RULE_UID:
		return uid_eq(rule->uid, current_uid()) ? rule->colors : 0;
	case SOL_RULE_REGISTERED:
		user = user_find(current_uid());
		return user ? user->colors : 0;
	default:
		return 0;
	}
}

/* The first enabled rule for this user and path, and how many bank sets. */
static struct sol_rule *rule_match(const char *given, const char *resolved,
				   u32 *colors)
{
	struct sol_rule *rule;

	list_for_each_entry(rule, &rules, link) {
		if (!rule->enabled)
			continue;
		*colors = rule_colors(rule);
		if (*colors && (glob_match(rule->path, resolved) ||
				(*given == '/' && glob_match(rule->path, given))))
			return rule;
	}
	return NULL;
}

/* A group by @rule with free colours, one reference; or an ERR_PTR, words. */
static struct sol_group *rule_group(const struct sol_rule *rule, u32 colors)
{
	const struct sol_want want = {
		.n_sets = colors,
		.near = sol_member_near(current),
		.allowed = sol_member_nodes(current),
		.realtime = rule->realtime,
	};
	struct sol_group *group = sol_group_new(rule->name, true);
	int err;

	if (IS_ERR(group))
		return group;
	group->exhaust = rule->exhaust;
	err = sol_group_auto(group, &want);
	if (!err)
		return group;
	sol_group_put(group);
	return ERR_PTR(err);
}

/* What the rules give to a process that executes this; NULL: nothing. */
static struct sol_group *rules_group(const char *given, const char *resolved)
{
	struct sol_group *group = NULL;
	struct sol_rule *rule;
	u32 colors;

	mutex_lock(&rule_mutex);
	rule = rule_match(given, resolved, &colors);
	if (rule) {
		group = rule_group(rule, colors);
		*(IS_ERR(group) ? &rule->refused : &rule->matched) += 1;
	}
	mutex_unlock(&rule_mutex);
	return IS_ERR(group) ? NULL : group;
}

/* ---- exec ---- */

static void try_end(struct exec_try *try)
{
	spin_lock(&tries_lock);
	list_del(&try->link);
	spin_unlock(&tries_lock);
	if (try->before)
		sol_group_put(try->before);
	put_task_struct(try->task);
	kfree(try);
}

/* On the way back to user space, or in exit. */
static void exec_done(struct callback_head *work)
{
	struct exec_try *try = container_of(work, struct exec_try, work);

	if (current->self_exec_id == try->exec_id)
		sol_member_undo_exec(try->before);
	try_end(try);
	/* The last touch: sol_rule_exit() waits for it. */
	atomic_dec(&n_tries);
}

/* Join @group until the exec turns out to fail. */
static int exec_join(struct sol_group *group, struct sol_group *before)
{
	struct exec_try *try = kzalloc(sizeof(*try), GFP_KERNEL);
	int err;

	if (!try)
		return -ENOMEM;
	atomic_inc(&n_tries);
	try->task = get_task_struct(current);
	try->exec_id = current->self_exec_id;
	if (before)
		sol_group_get(before);
	try->before = before;
	init_task_work(&try->work, exec_done);
	spin_lock(&tries_lock);
	list_add(&try->link, &tries);
	spin_unlock(&tries_lock);
	err = sol_member_join_exec(group) ?:
	      task_work_add(current, &try->work, TWA_RESUME);
	if (err)
		exec_done(&try->work);
	return err;
}

/* @name under the directory @at. */
static int path_below(const struct path *at, const char *name,
		      struct path *path)
{
	char *buf = kmalloc(PATH_MAX, GFP_KERNEL), *dir, *full = NULL;
	int err = -ENOMEM;

	dir = buf ? d_path(at, buf, PATH_MAX) : NULL;
	if (!IS_ERR_OR_NULL(dir))
		full = kasprintf(GFP_KERNEL, "%s/%s", dir, name);
	if (full)
		err = kern_path(full, LOOKUP_FOLLOW, path);
	kfree(full);
	kfree(buf);
	return err;
}

/* What execveat(fd, name) will open. */
static int exec_path(int fd, const char *name, struct path *path)
{
	struct file *file;
	int err = 0;

	if (fd == AT_FDCWD || *name == '/')
		return kern_path(name, LOOKUP_FOLLOW, path);
	file = fget_raw(fd);
	if (!file)
		return -EBADF;
	if (*name) {
		err = path_below(&file->f_path, name, path);
	} else {
		*path = file->f_path;
		path_get(path);
	}
	fput(file);
	return err;
}

/* The group for an exec of @name, with a reference; NULL: none. */
static struct sol_group *exec_group(int fd, const char *name)
{
	struct sol_group *group = NULL;
	char *buf, *resolved;
	struct path path;

	if (exec_path(fd, name, &path))
		return NULL;
	buf = kmalloc(PATH_MAX, GFP_KERNEL);
	resolved = buf ? d_path(&path, buf, PATH_MAX) : NULL;
	if (!IS_ERR_OR_NULL(resolved))
		group = rules_group(name, resolved);
	kfree(buf);
	path_put(&path);
	return group;
}

static void exec_begins(int fd, const char *name)
{
	struct sol_group *before = sol_member_group(current);
	struct sol_group *group = NULL;

	if (!before || before->implicit)
		group = exec_group(fd, name);
	if (group) {
		exec_join(group, before);
		sol_group_put(group);
	}
	if (before)
		sol_group_put(before);
}

/* Before alloc_bprm(), which always goes on. */
unsigned long sol_rule_exec(int fd, struct filename *filename);
unsigned long sol_rule_exec(int fd, struct filename *filename)
{
	int busy;

	if (!sol_rule_count())
		return SOL_PASS;
	busy = srcu_read_lock(&execs);
	exec_begins(fd, filename->name);
	srcu_read_unlock(&execs, busy);
	return SOL_PASS;
}

SOL_TRAMPOLINE(sol_rule_trampoline, sol_rule_exec, SOL_IF_ANY);

/* ---- Load and unload ---- */

static struct sol_hook rule_hook[] = {
	SOL_HOOK("alloc_bprm", NULL, sol_rule_trampoline),
};

typedef struct callback_head *
cancel_fn(struct task_struct *task,
	  bool (*match)(struct callback_head *work, void *data), void *data);
DEFINE_STATIC_CALL_NULL(sol_task_work_cancel, cancel_fn);

int sol_rule_init(void)
{
	return sol_bind(sol_task_work_cancel, "task_work_cancel_match") ?:
	       sol_hooks_attach(rule_hook, ARRAY_SIZE(rule_hook));
}

static bool try_match(struct callback_head *work, void *data)
{
	return work->func == exec_done;
}

/* Some task with an exec under way, with a reference; or NULL. */
static struct task_struct *try_task(void)
{
	struct task_struct *task = NULL;

	spin_lock(&tries_lock);
	if (!list_empty(&tries))
		task = get_task_struct(list_first_entry(&tries, struct exec_try,
							link)->task);
	spin_unlock(&tries_lock);
	return task;
}

/*
 * Take back the work of execs under way: a debugger may hold a task in the
 * middle of one for ever. What can't be taken back is running just now.
 */
static void tries_cancel(void)
{
	struct callback_head *work;
	struct task_struct *task;

	while (atomic_read(&n_tries)) {
		task = try_task();
		work = task ? static_call(sol_task_work_cancel)(task, try_match,
								NULL) : NULL;
		if (work) {
			try_end(container_of(work, struct exec_try, work));
			atomic_dec(&n_tries);
		} else {
			usleep_range(500, 1000);
		}
		if (task)
			put_task_struct(task);
	}
}

void sol_rule_exit(void)
{
	struct coloring_user *user, *next;

	sol_hooks_detach(rule_hook, ARRAY_SIZE(rule_hook));
	synchronize_srcu(&execs);
	tries_cancel();
	/* exec_done() may be past its last touch, and not yet out of our text. */
	synchronize_rcu_tasks();
	list_for_each_entry_safe(user, next, &users, link)
		user_del(user);
}
