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
 * Locking: rule_mutex for who changes the rules and registered users. Readers use RCU: any
 * user executes programs and reads the files of rules, on a CPU where it may be stopped for as
 * long as others like, and no exec waits for another user.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/glob.h>
#include <linux/rculist.h>
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
	struct rcu_head rcu;
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

/* What @rule matches, for who holds the mutex. */
static const struct sol_rule_match *match_of(const struct sol_rule *rule)
{
	return rcu_dereference_protected(rule->match, lockdep_is_held(&rule_mutex));
}

static int replace(struct sol_rule *rule, enum sol_rule_who who, kuid_t uid,
		   const char *path, size_t len)
{
	struct sol_rule_match *match = kmalloc(struct_size(match, path, len + 1), GFP_KERNEL);

	if (!match)
		return sol_no_memory(rule->name);
	match->who = who;
	match->uid = uid;
	memcpy(match->path, path, len);
	match->path[len] = 0;
	match = rcu_replace_pointer(rule->match, match, lockdep_is_held(&rule_mutex));
	if (match)
		kfree_rcu(match, rcu);
	return 0;
}

int sol_rule_add(struct sol_rule *rule)
{
	int err;

	mutex_lock(&rule_mutex);
	err = replace(rule, SOL_RULE_NOBODY, INVALID_UID, "", 0);
	if (!err) {
		rule->serial = ++last_serial;
		get_fs_root(current->fs, &rule->root);
		list_add_tail_rcu(&rule->link, &rules);
		WRITE_ONCE(n_rules, n_rules + 1);
	}
	mutex_unlock(&rule_mutex);
	return err;
}

void sol_rule_del(struct sol_rule *rule)
{
	mutex_lock(&rule_mutex);
	list_del_rcu(&rule->link);
	WRITE_ONCE(n_rules, n_rules - 1);
	mutex_unlock(&rule_mutex);
	/* An exec that still sees it compares with its address only. */
	path_put(&rule->root);
}

int sol_rule_set_user(struct sol_rule *rule, enum sol_rule_who who, kuid_t uid)
{
	const char *path;
	int err;

	mutex_lock(&rule_mutex);
	path = match_of(rule)->path;
	err = replace(rule, who, uid, path, strlen(path));
	mutex_unlock(&rule_mutex);
	return err;
}

int sol_rule_set_path(struct sol_rule *rule, const char *path, size_t len)
{
	const struct sol_rule_match *match;
	int err;

	mutex_lock(&rule_mutex);
	match = match_of(rule);
	err = replace(rule, match->who, match->uid, path, len);
	mutex_unlock(&rule_mutex);
	return err;
}

int sol_rule_enable(struct sol_rule *rule, bool on)
{
	const struct sol_rule_match *match;
	int err = 0;

	mutex_lock(&rule_mutex);
	match = match_of(rule);
	if (on && (match->who == SOL_RULE_NOBODY || !*match->path))
		err = sol_deny(-EINVAL, "enabled: the rule needs %s first",
			       *match->path ? "uid" : "path");
	else
		WRITE_ONCE(rule->enabled, on);
	mutex_unlock(&rule_mutex);
	return err;
}

u32 sol_rule_count(void)
{
	return READ_ONCE(n_rules);
}

/* ---- Registered users ---- */

static struct coloring_user *user_find(kuid_t uid)
{
	struct coloring_user *user;

	list_for_each_entry_rcu(user, &users, link, lockdep_is_held(&rule_mutex))
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
	list_add_rcu(&user->link, &users);
	n_users++;
	return 0;
}

static void user_del(struct coloring_user *user)
{
	list_del_rcu(&user->link);
	n_users--;
	kfree_rcu(user, rcu);
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
	WRITE_ONCE(user->colors, n);
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

/* ---- Matching: under RCU ---- */

/**
 * struct program - what is executed
 * @given: its name as given
 * @path: of the file
 * @root: the root directory of the current task
 * @buf: of PATH_MAX bytes
 */
struct program {
	const char *given;
	const struct path *path;
	struct path root;
	char *buf;
};

/* Bank sets for the current user by @rule; 0: not for this user. */
static u32 rule_colors(const struct sol_rule *rule, const struct sol_rule_match *match)
{
	struct coloring_user *user;
	u32 colors = READ_ONCE(rule->colors);

	switch (match->who) {
	case SOL_RULE_ANY:
		return colors;
	case SOL_RULE_UID:
		return uid_eq(match->uid, current_uid()) ? colors : 0;
	case SOL_RULE_REGISTERED:
		user = user_find(current_uid());
		return user ? READ_ONCE(user->colors) : 0;
	default:
		return 0;
	}
}

/*
 * Does the name as given match? So a rule may name a symbolic link. The name must mean
 * to the caller what it meant to the rule's maker, and must not lead elsewhere (a
 * glob's * takes slashes and dots).
 */
static bool given_matches(const struct sol_rule *rule, const char *glob,
			  const struct program *p)
{
	return *p->given == '/' && !strstr(p->given, "/../") && !strstr(p->given, "/./") &&
	       path_equal(&p->root, &rule->root) && glob_match(glob, p->given);
}

/*
 * Does the file's path match, as the rule's maker sees it? A file that can't be reached
 * from the maker's root, such as one of a container, has no such path.
 */
static bool path_matches(const struct sol_rule *rule, const char *glob,
			 const struct program *p)
{
	char *seen = static_call(sol_path_below)(p->path, &rule->root, p->buf, PATH_MAX);

	return !IS_ERR_OR_NULL(seen) && glob_match(glob, seen);
}

/* How many bank sets @rule grants to the current user's program; 0: it does not match. */
static u32 rule_match(const struct sol_rule *rule, const struct program *p)
{
	const struct sol_rule_match *match = rcu_dereference(rule->match);
	u32 colors = READ_ONCE(rule->enabled) ? rule_colors(rule, match) : 0;

	if (colors && (path_matches(rule, match->path, p) ||
		       given_matches(rule, match->path, p)))
		return colors;
	return 0;
}

/* The grant of @rule; of none if it ends just now. */
static struct sol_rule_grant grant_of(const struct sol_rule *rule, u32 colors)
{
	struct sol_rule_grant grant = {
		.colors = colors,
		.exhaust = READ_ONCE(rule->exhaust),
		.realtime = READ_ONCE(rule->realtime),
		.quota = sol_quota_get(rule->quota),
	};

	if (grant.quota)
		grant.serial = rule->serial;
	strscpy(grant.name, rule->name, sizeof(grant.name));
	return grant;
}

struct sol_rule_grant sol_rule_find(const char *given, const struct path *path,
				    char *buf)
{
	struct program p = { .given = given, .path = path, .buf = buf };
	struct sol_rule_grant grant = { 0 };
	struct sol_rule *rule;
	u32 colors;

	get_fs_root(current->fs, &p.root);
	rcu_read_lock();
	list_for_each_entry_rcu(rule, &rules, link) {
		colors = rule_match(rule, &p);
		if (colors)
			grant = grant_of(rule, colors);
		if (grant.serial)
			break;
	}
	rcu_read_unlock();
	path_put(&p.root);
	return grant;
}

static void rule_count(u64 serial, bool refused)
{
	struct sol_rule *rule;

	rcu_read_lock();
	list_for_each_entry_rcu(rule, &rules, link)
		if (rule->serial == serial)
			atomic64_inc(refused ? &rule->refused : &rule->matched);
	rcu_read_unlock();
}

/* ---- Granting ---- */

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

/* As above, and counted. Seeking colours may last. */
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
