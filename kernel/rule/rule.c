// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: colours by user and path, at exec (CAMC 3.4).
 *
 * A direct hook on copy_string_kernel sees every execve() before anything lies in its
 * new address space, so that even the pages of its arguments are in colour. If a rule
 * matches, the process gets an implicit group of its own, with free colours on the
 * nodes of the CPUs that it may use. The old program's pages stay where they are.
 * Whether the exec succeeded is known when the task returns to user space: a task work
 * compares self_exec_id, which only a success changes, and puts the task back if it
 * is the same.
 *
 * The file that the kernel opened is matched, so of a script the script and not its
 * interpreter: by the name as given, if it is absolute, and by the file's path. Both
 * are as the maker of the rule sees them, so that nobody who mounts or changes roots can
 * pass for another's program. No path is walked here, which might wait for a file
 * server for ever. Some kernels copy the arguments before they open the file
 * (SOL_EXEC_OPENS_LATE): there we ask the cache for the path, and a second hook
 * corrects what the cache did not know.
 *
 * Differs from the paper: the path is a glob in a rule; the user need not register if
 * the rule names it; children that execute a program which no rule matches stay in
 * their parent's group. A task in a group that was made by hand stays there.
 *
 * Locking: rule_mutex guards the rules and registered users; sol_group_mutex nests
 * inside. Nothing under either waits for other CPUs. tries_lock guards the list of
 * execs under way. Unloading waits by an SRCU of this file, since sol_lists_users may
 * be waited for under sol_group_mutex.
 */
#define pr_fmt(fmt) "soloist: " fmt

#include <linux/binfmts.h>
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/glob.h>
#include <linux/namei.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/uidgid.h>
#include "../compat/exec.h"
#include "../compat/trampoline.h"
#include "../palette/colors.h"
#include "../palette/life.h"
#include "../palette/map.h"
#include "../hook/hook.h"
#include "../group/member.h"
#include "../palette/quota.h"
#include "rule.h"
#include "../command/status.h"

#define MAX_USERS	1024

/* A user who registered with CAMC's mmap() call. */
struct coloring_user {
	struct list_head link;
	kuid_t uid;
	u32 colors;
};

/* An exec under way; whether it succeeds is not known yet. */
struct exec_try {
	struct callback_head work;
	struct list_head link;
	struct task_struct *task;
	struct sol_group *before;	/* referenced, or NULL */
	u64 exec_id;
	u64 serial;			/* of the rule that matched */
};

typedef char *path_below_fn(const struct path *path, const struct path *root,
			    char *buf, int size);
DEFINE_STATIC_CALL_NULL(sol_path_below, path_below_fn);

DEFINE_STATIC_SRCU(execs);
static DEFINE_MUTEX(rule_mutex);
static LIST_HEAD(rules);
static LIST_HEAD(users);
static u32 n_rules, n_users;
static u64 last_serial;

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
	rule->serial = ++last_serial;
	get_fs_root(current->fs, &rule->root);
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
	path_put(&rule->root);
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
	const struct sol_map *map = sol_map_in_use();
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

/*
 * Does the name as given match? So a rule may name a symbolic link. The name must mean
 * to the caller what it meant to the rule's maker, and must not lead elsewhere (a
 * glob's * takes slashes and dots).
 */
static bool given_matches(const struct sol_rule *rule, const char *given)
{
	struct path root;
	bool same;

	if (*given != '/' || strstr(given, "/../") || strstr(given, "/./") ||
	    !glob_match(rule->path, given))
		return false;
	get_fs_root(current->fs, &root);
	same = path_equal(&root, &rule->root);
	path_put(&root);
	return same;
}

/*
 * Does the file's path match, as the rule's maker sees it? A file that can't be reached
 * from the maker's root, such as one of a container, has no such path.
 */
static bool path_matches(const struct sol_rule *rule, const struct path *path,
			 char *buf)
{
	char *seen = static_call(sol_path_below)(path, &rule->root, buf,
						 PATH_MAX);

	return !IS_ERR_OR_NULL(seen) && glob_match(rule->path, seen);
}

/* The first enabled rule for this user and path, and how many bank sets. */
static struct sol_rule *rule_match(const char *given, const struct path *path,
				   char *buf, u32 *colors)
{
	struct sol_rule *rule;

	list_for_each_entry(rule, &rules, link) {
		if (!rule->enabled)
			continue;
		*colors = rule_colors(rule);
		if (*colors && (path_matches(rule, path, buf) ||
				given_matches(rule, given)))
			return rule;
	}
	return NULL;
}

/* A grant of a rule to a process. The rule itself may be removed meanwhile. */
struct rule_grant {
	u64 serial;		/* of the rule; 0: none matched */
	u32 colors;
	u8 exhaust;
	bool realtime;
	struct sol_quota *quota;	/* referenced; NULL: none matched */
	char name[SOL_GROUP_NAME];
};

static struct rule_grant rules_grant(const char *given, const struct path *path,
				     char *buf)
{
	struct rule_grant grant = { 0 };
	struct sol_rule *rule;

	mutex_lock(&rule_mutex);
	rule = rule_match(given, path, buf, &grant.colors);
	if (rule) {
		grant.serial = rule->serial;
		grant.exhaust = rule->exhaust;
		grant.realtime = rule->realtime;
		grant.quota = sol_quota_get(rule->quota);
		strscpy(grant.name, rule->name, sizeof(grant.name));
	}
	mutex_unlock(&rule_mutex);
	return grant;
}

static void rule_count(u64 serial, bool refused)
{
	struct sol_rule *rule;

	mutex_lock(&rule_mutex);
	list_for_each_entry(rule, &rules, link)
		if (rule->serial == serial)
			*(refused ? &rule->refused : &rule->matched) += 1;
	mutex_unlock(&rule_mutex);
}

/* A group with free colours, one reference; or an ERR_PTR, words. */
static struct sol_group *group_new(const struct rule_grant *grant)
{
	const struct sol_want want = {
		.n_sets = grant->colors,
		.near = sol_member_near(current),
		.allowed = sol_member_nodes(current),
		.realtime = grant->realtime,
	};
	struct sol_group *group = sol_group_new(grant->name, true);
	int err;

	if (IS_ERR(group))
		return group;
	group->exhaust = grant->exhaust;
	sol_quota_begin(group, grant->quota, current_uid());
	err = sol_group_auto(group, &want);
	if (!err)
		return group;
	if (err == -EDQUOT)
		atomic64_inc(&grant->quota->limited);
	sol_group_put(group);
	return ERR_PTR(err);
}

/*
 * As above, and counted. Colours are sought without the mutex, which every exec
 * takes: that may last.
 */
static struct sol_group *grant_group(const struct rule_grant *grant)
{
	struct sol_group *group = group_new(grant);

	rule_count(grant->serial, IS_ERR(group));
	return group;
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

static struct exec_try *try_new(u64 serial, struct sol_group *before)
{
	struct exec_try *try = kzalloc(sizeof(*try), GFP_KERNEL);

	if (!try)
		return NULL;
	atomic_inc(&n_tries);
	try->task = get_task_struct(current);
	try->exec_id = current->self_exec_id;
	try->serial = serial;
	if (before)
		sol_group_get(before);
	try->before = before;
	init_task_work(&try->work, exec_done);
	spin_lock(&tries_lock);
	list_add(&try->link, &tries);
	spin_unlock(&tries_lock);
	return try;
}

/*
 * Join a group of the grant, unless the exec fails. If the group got no colours, the
 * try tells exec_opened() that a rule matched.
 */
static void exec_join(const struct rule_grant *grant, struct sol_group *before)
{
	struct exec_try *try = try_new(grant->serial, before);
	struct sol_group *group;
	int err = 0;

	if (!try)
		return;
	group = grant_group(grant);
	if (!IS_ERR(group)) {
		err = sol_member_join_exec(group);
		sol_group_put(group);
	}
	if (err || task_work_add(current, &try->work, TWA_RESUME))
		exec_done(&try->work);
}

/* The grant of the rules to the exec of @path; ->serial is 0 if none matches. */
static struct rule_grant exec_grant(const struct linux_binprm *bprm,
				    const struct path *path)
{
	/* The kernel makes up a name relative to a file descriptor. */
	const char *given = bprm->fdpath ? "" : bprm->filename;
	char *buf = kmalloc(PATH_MAX, GFP_KERNEL);
	struct rule_grant grant = { 0 };

	if (buf)
		grant = rules_grant(given, path, buf);
	kfree(buf);
	return grant;
}

/* A task in a group that someone made by hand stays there. */
static void exec_path(const struct linux_binprm *bprm, const struct path *path)
{
	struct sol_group *before = sol_member_group(current);
	struct rule_grant grant = { 0 };

	if (!before || before->implicit)
		grant = exec_grant(bprm, path);
	if (grant.serial)
		exec_join(&grant, before);
	sol_quota_put(grant.quota);
	if (before)
		sol_group_put(before);
}

#ifdef SOL_EXEC_OPENS_LATE
/* Look the path up in the cache only: a file server is not asked. */
static void exec_named(const struct linux_binprm *bprm)
{
	struct path path;

	if (bprm->fdpath || kern_path(bprm->filename,
				      LOOKUP_FOLLOW | LOOKUP_CACHED, &path))
		return;
	exec_path(bprm, &path);
	path_put(&path);
}

/* The current task's exec under way; it alone makes and ends it. */
static struct exec_try *try_of_current(void)
{
	struct exec_try *try, *found = NULL;

	spin_lock(&tries_lock);
	list_for_each_entry(try, &tries, link)
		if (try->task == current)
			found = try;
	spin_unlock(&tries_lock);
	return found;
}

/* Another rule may match the file than matched the path before, or none. */
static void exec_opened(const struct linux_binprm *bprm)
{
	struct exec_try *try = try_of_current();
	struct rule_grant grant;
	struct sol_group *group;

	if (!try) {
		exec_path(bprm, &bprm->file->f_path);
		return;
	}
	grant = exec_grant(bprm, &bprm->file->f_path);
	if (grant.serial != try->serial) {
		sol_member_undo_exec(try->before);
		try->serial = grant.serial;
		group = grant.serial ? grant_group(&grant) : NULL;
		if (!IS_ERR_OR_NULL(group)) {
			sol_member_join_exec(group);
			sol_group_put(group);
		}
	}
	sol_quota_put(grant.quota);
}

/* Before security_bprm_creds_for_exec(), which always goes on. */
unsigned long sol_rule_opened(const struct linux_binprm *bprm);
unsigned long sol_rule_opened(const struct linux_binprm *bprm)
{
	int inside;

	if (!sol_rule_count() && !atomic_read(&n_tries))
		return SOL_PASS;
	inside = srcu_read_lock(&execs);
	exec_opened(bprm);
	srcu_read_unlock(&execs, inside);
	return SOL_PASS;
}

SOL_TRAMPOLINE(sol_rule_opened_trampoline, sol_rule_opened, SOL_IF_ANY);
#endif

static void exec_begins(const struct linux_binprm *bprm)
{
#ifdef SOL_EXEC_OPENS_LATE
	exec_named(bprm);
#else
	exec_path(bprm, &bprm->file->f_path);
#endif
}

/*
 * Before copy_string_kernel(), which always goes on. The first string of an exec
 * is its name; ->exec is set after that.
 */
unsigned long sol_rule_exec(const char *arg, const struct linux_binprm *bprm);
unsigned long sol_rule_exec(const char *arg, const struct linux_binprm *bprm)
{
	int inside;

	if (bprm->exec || !sol_rule_count())
		return SOL_PASS;
	inside = srcu_read_lock(&execs);
	exec_begins(bprm);
	srcu_read_unlock(&execs, inside);
	return SOL_PASS;
}

SOL_TRAMPOLINE(sol_rule_trampoline, sol_rule_exec, SOL_IF_ANY);

/* ---- Load and unload ---- */

static struct sol_hook rule_hooks[] = {
	SOL_HOOK("copy_string_kernel", sol_rule_trampoline),
#ifdef SOL_EXEC_OPENS_LATE
	SOL_HOOK("security_bprm_creds_for_exec", sol_rule_opened_trampoline),
#endif
};

typedef struct callback_head *
cancel_fn(struct task_struct *task,
	  bool (*match)(struct callback_head *work, void *data), void *data);
DEFINE_STATIC_CALL_NULL(sol_task_work_cancel, cancel_fn);

int sol_rule_init(void)
{
	return sol_bind(sol_path_below, "__d_path") ?:
	       sol_bind(sol_task_work_cancel, "task_work_cancel_match") ?:
	       sol_hooks_attach(rule_hooks, ARRAY_SIZE(rule_hooks));
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
 * Cancel the work of execs under way: a debugger may hold a task in the middle of one
 * for ever. A work that can't be cancelled runs just now.
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

	sol_hooks_detach(rule_hooks, ARRAY_SIZE(rule_hooks));
	synchronize_srcu(&execs);
	tries_cancel();
	/* exec_done() may be past its last touch, and not yet out of our text. */
	synchronize_rcu_tasks();
	list_for_each_entry_safe(user, next, &users, link)
		user_del(user);
}
