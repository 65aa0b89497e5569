// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: which programs of which users get colours (CAMC 3.4). exec.c applies them.
 *
 * The file that the kernel opened is matched, so of a script the script and not its
 * interpreter: by the name as given, if it is absolute, and by the file's path. Both
 * are as the maker of the rule sees them, so that nobody who mounts or changes roots can
 * pass for another's program. No path is walked here, which might wait for a file
 * server for ever.
 *
 * Differs from the paper: the path is a glob in a rule, and the user need not register
 * if the rule names it.
 *
 * Locking: rule_mutex guards the rules and registered users. Every exec takes it, so that
 * nothing under it waits for other CPUs or for sol_group_mutex.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/glob.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "../command/status.h"
#include "../group/member.h"
#include "../hook/table.h"
#include "../palette/colors.h"
#include "../palette/life.h"
#include "../palette/map.h"
#include "../palette/quota.h"
#include "rule.h"

#define MAX_USERS	1024
#define MAX_USERS_OF_ONE	64

/* A user who registered with CAMC's mmap() call. */
struct coloring_user {
	struct list_head link;
	kuid_t uid;
	kuid_t by;	/* sol_quota_uid() of who registered it */
	u32 colors;
};

typedef char *path_below_fn(const struct path *path, const struct path *root,
			    char *buf, int size);
DEFINE_STATIC_CALL_NULL(sol_path_below, path_below_fn);

static DEFINE_MUTEX(rule_mutex);
static LIST_HEAD(rules);
static LIST_HEAD(users);
static u32 n_rules, n_users;
static u64 last_serial;

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

/* Users that @by answers for. */
static u32 users_by(kuid_t by)
{
	struct coloring_user *user;
	u32 n = 0;

	list_for_each_entry(user, &users, link)
		n += uid_eq(user->by, by);
	return n;
}

static int user_add(kuid_t uid, u32 n)
{
	const kuid_t by = sol_quota_uid();
	struct coloring_user *user;

	if (users_by(by) >= MAX_USERS_OF_ONE)
		return sol_deny(-ENOSPC,
				"mmap: %u users are registered by one, no more fit",
				MAX_USERS_OF_ONE);
	if (n_users >= MAX_USERS)
		return sol_deny(-ENOSPC, "mmap: %u users are registered, no more fit",
				n_users);
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return sol_no_memory("mmap");
	user->uid = uid;
	user->by = by;
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

/* Has the machine @n colours? If it gets another map later, its assignments tell. */
static int check_colors(u32 n)
{
	const struct sol_map *map;
	int err = 0;

	mutex_lock(&sol_group_mutex);
	map = sol_map_in_use();
	if (n && (!map || n > map->n_colors))
		err = sol_deny(-EINVAL, "mmap: %u colours, but %s has %u", n,
			       map ? map->name : "no map is set and the machine",
			       map ? map->n_colors : 0);
	mutex_unlock(&sol_group_mutex);
	return err;
}

static int user_register(kuid_t uid, u32 n)
{
	struct coloring_user *user = user_find(uid);

	if (!n && !user)
		return sol_deny(-ENOENT, "mmap: this user is not registered");
	if (!n) {
		user_del(user);
		return 0;
	}
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
	int err = check_colors(n);

	if (err)
		return err;
	mutex_lock(&rule_mutex);
	err = user_register(uid, n);
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

struct sol_rule_grant sol_rule_find(const char *given, const struct path *path,
				    char *buf)
{
	struct sol_rule_grant grant = { 0 };
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
static struct sol_group *group_new(const struct sol_rule_grant *grant)
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
	sol_quota_begin(group, grant->quota, sol_quota_uid());
	err = sol_group_auto(group, NULL, &want);
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
struct sol_group *sol_rule_group(const struct sol_rule_grant *grant)
{
	struct sol_group *group = group_new(grant);

	rule_count(grant->serial, IS_ERR(group));
	return group;
}

/* ---- Load and unload ---- */

int sol_rules_init(void)
{
	return sol_bind(sol_path_below, "__d_path");
}

void sol_rules_exit(void)
{
	struct coloring_user *user, *next;

	list_for_each_entry_safe(user, next, &users, link)
		user_del(user);
}
