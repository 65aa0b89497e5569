// SPDX-License-Identifier: GPL-2.0
/*
 * rules/NAME/: the files of a rule. rule/rule.c says what they mean.
 *
 * Locking: what several words say is read under RCU. rule/rule.c has the lock of writers.
 */
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include "control.h"
#include "../palette/map.h"
#include "../palette/quota.h"
#include "../rule/rule.h"
#include "../command/status.h"

struct rule_dir {
	struct config_item item;
	struct rcu_head rcu;
	struct sol_rule rule;
};

static struct sol_rule *to_rule(struct config_item *item)
{
	return &container_of(item, struct rule_dir, item)->rule;
}

/* ---- uid ---- */

static ssize_t rule_uid_show(struct config_item *item, char *page)
{
	const struct sol_rule_match *match;
	ssize_t n = 0;

	rcu_read_lock();
	match = rcu_dereference(to_rule(item)->match);
	switch (match->who) {
	case SOL_RULE_ANY:
		n = sysfs_emit(page, "any\n");
		break;
	case SOL_RULE_REGISTERED:
		n = sysfs_emit(page, "registered\n");
		break;
	case SOL_RULE_UID:
		n = sysfs_emit(page, "%u\n",
			       from_kuid_munged(current_user_ns(), match->uid));
		break;
	default:
		n = sysfs_emit(page, "\n");
		break;
	}
	rcu_read_unlock();
	return n;
}

static int uid_parse(const char *page, size_t count, enum sol_rule_who *who,
		     kuid_t *uid)
{
	u32 number;

	if (sysfs_streq(page, "any")) {
		*who = SOL_RULE_ANY;
		return 0;
	}
	if (sysfs_streq(page, "registered")) {
		*who = SOL_RULE_REGISTERED;
		return 0;
	}
	if (!isdigit(*page) || kstrtou32(page, 10, &number))
		return sol_deny(-EINVAL,
				"uid: expected a user id, any or registered");
	*uid = make_kuid(current_user_ns(), number);
	if (!uid_valid(*uid))
		return sol_deny(-EINVAL, "uid: %u is no user id here", number);
	*who = SOL_RULE_UID;
	return 0;
}

static ssize_t rule_uid_store(struct config_item *item, const char *page,
			      size_t count)
{
	enum sol_rule_who who;
	kuid_t uid = INVALID_UID;
	int err = sol_command_may("uid", page, count);

	if (!err)
		err = uid_parse(page, count, &who, &uid);
	if (!err)
		err = sol_rule_set_user(to_rule(item), who, uid);
	return sol_status_done(err, count);
}

/* ---- path ---- */

static ssize_t rule_path_show(struct config_item *item, char *page)
{
	ssize_t n;

	rcu_read_lock();
	n = sysfs_emit(page, "%s\n", rcu_dereference(to_rule(item)->match)->path);
	rcu_read_unlock();
	return n;
}

static int path_store(struct sol_rule *rule, const char *page, size_t count)
{
	size_t len = sol_command_trim(page, count);

	if ((*page != '/' && *page != '*') || strnlen(page, len) < len)
		return sol_deny(-EINVAL,
				"path: expected a glob over absolute paths, such as /usr/bin/*");
	return sol_rule_set_path(rule, page, len);
}

static ssize_t rule_path_store(struct config_item *item, const char *page,
			       size_t count)
{
	int err = sol_command_may("path", page, count);

	return sol_status_done(err ?: path_store(to_rule(item), page, count),
			       count);
}

/* ---- Numbers and switches ---- */

static ssize_t rule_colors_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(to_rule(item)->colors));
}

static ssize_t rule_colors_store(struct config_item *item, const char *page,
				 size_t count)
{
	int err = sol_command_may("colors", page, count);
	u64 n;

	if (!err)
		err = sol_command_number("colors", page, 1u << SOL_MAX_BANK_BITS, &n);
	if (!err && !n)
		err = sol_deny(-EINVAL, "colors: at least 1");
	if (!err)
		WRITE_ONCE(to_rule(item)->colors, n);
	return sol_status_done(err, count);
}

/* ---- limits: a number, or default, which is shown with what it is now ---- */

static ssize_t limit_show(u32 set, u32 holds, char *page)
{
	return sysfs_emit(page, "%u%s\n", holds, set ? "" : " default");
}

static int limit_store(const char *what, const char *page, size_t count,
		       u32 *limit)
{
	int err = sol_command_may(what, page, count);
	u64 n = 0;

	if (err)
		return err;
	if (!sysfs_streq(page, "default")) {
		err = sol_command_number(what, page, 1u << SOL_MAX_BANK_BITS, &n);
		if (!err && !n)
			err = sol_deny(-EINVAL, "%s: at least 1, or default",
				       what);
	}
	if (!err)
		WRITE_ONCE(*limit, n);
	return err;
}

static ssize_t rule_limit_show(struct config_item *item, char *page)
{
	const struct sol_rule *rule = to_rule(item);
	const struct sol_quota *quota = rule->quota;

	return limit_show(quota->limit,
			  sol_quota_limit(quota, READ_ONCE(rule->colors)),
			  page);
}

static ssize_t rule_limit_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = limit_store("limit", page, count,
			      &to_rule(item)->quota->limit);

	return sol_status_done(err, count);
}

static ssize_t rule_user_limit_show(struct config_item *item, char *page)
{
	const struct sol_rule *rule = to_rule(item);
	const struct sol_quota *quota = rule->quota;

	return limit_show(quota->user_limit,
			  sol_quota_user_limit(quota, READ_ONCE(rule->colors)),
			  page);
}

static ssize_t rule_user_limit_store(struct config_item *item,
				     const char *page, size_t count)
{
	int err = limit_store("user_limit", page, count,
			      &to_rule(item)->quota->user_limit);

	return sol_status_done(err, count);
}

static ssize_t rule_exhaust_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  sol_exhaust_name[READ_ONCE(to_rule(item)->exhaust)]);
}

static ssize_t rule_exhaust_store(struct config_item *item, const char *page,
				  size_t count)
{
	int err = sol_command_may("exhaust", page, count);
	u8 exhaust;

	if (!err)
		err = sol_control_exhaust(page, count, &exhaust);
	if (!err)
		WRITE_ONCE(to_rule(item)->exhaust, exhaust);
	return sol_status_done(err, count);
}

static ssize_t rule_realtime_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(to_rule(item)->realtime));
}

static ssize_t rule_realtime_store(struct config_item *item, const char *page,
				   size_t count)
{
	int err = sol_command_may("realtime", page, count);
	u64 n;

	if (!err)
		err = sol_command_number("realtime", page, 1, &n);
	if (!err)
		WRITE_ONCE(to_rule(item)->realtime, n);
	return sol_status_done(err, count);
}

static ssize_t rule_enabled_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(to_rule(item)->enabled));
}

static ssize_t rule_enabled_store(struct config_item *item, const char *page,
				  size_t count)
{
	int err = sol_command_may("enabled", page, count);
	u64 n;

	if (!err)
		err = sol_command_number("enabled", page, 1, &n);
	if (!err)
		err = sol_rule_enable(to_rule(item), n);
	return sol_status_done(err, count);
}

static ssize_t rule_stats_show(struct config_item *item, char *page)
{
	struct sol_rule *rule = to_rule(item);

	return sysfs_emit(page,
			  "matched %llu\nrefused %llu\nlimited %llu\nheld %u\norder %llu\n",
			  (u64)atomic64_read(&rule->matched),
			  (u64)atomic64_read(&rule->refused),
			  (u64)atomic64_read(&rule->quota->limited),
			  sol_quota_held(rule->quota), rule->serial);
}

CONFIGFS_ATTR(rule_, uid);
CONFIGFS_ATTR(rule_, path);
CONFIGFS_ATTR(rule_, colors);
CONFIGFS_ATTR(rule_, limit);
CONFIGFS_ATTR(rule_, user_limit);
CONFIGFS_ATTR(rule_, exhaust);
CONFIGFS_ATTR(rule_, realtime);
CONFIGFS_ATTR(rule_, enabled);
CONFIGFS_ATTR_RO(rule_, stats);

static struct configfs_attribute *rule_attrs[] = {
	&rule_attr_uid,
	&rule_attr_path,
	&rule_attr_colors,
	&rule_attr_limit,
	&rule_attr_user_limit,
	&rule_attr_exhaust,
	&rule_attr_realtime,
	&rule_attr_enabled,
	&rule_attr_stats,
	NULL,
};

/* ---- mkdir and rmdir ---- */

/* Execs may still read it. */
static void rule_free(struct rule_dir *dir)
{
	struct sol_rule_match *match = rcu_dereference_raw(dir->rule.match);

	sol_quota_put(dir->rule.quota);
	if (match)
		kfree_rcu(match, rcu);
	kfree_rcu(dir, rcu);
}

static void rule_release(struct config_item *item)
{
	rule_free(container_of(item, struct rule_dir, item));
}

static struct configfs_item_operations rule_item_ops = {
	.release = rule_release,
};

static const struct config_item_type rule_type = {
	.ct_item_ops = &rule_item_ops,
	.ct_attrs = rule_attrs,
	.ct_owner = THIS_MODULE,
};

static int have_map(const char *name)
{
	bool have;

	mutex_lock(&sol_group_mutex);
	have = sol_map_in_use();
	mutex_unlock(&sol_group_mutex);
	return have ? 0 : sol_deny(-ENXIO,
		"%s: no address map yet; write one to map first", name);
}

static struct config_item *rules_make_item(struct config_group *parent,
					   const char *name)
{
	struct rule_dir *dir;
	int err = sol_command_may(name, NULL, 0) ?: have_map(name);

	if (err)
		return ERR_PTR(err);
	dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	if (dir)
		dir->rule.quota = sol_quota_new();
	if (!dir || !dir->rule.quota) {
		kfree(dir);
		return ERR_PTR(sol_no_memory(name));
	}
	strscpy(dir->rule.name, name, sizeof(dir->rule.name));
	dir->rule.colors = 1;
	dir->rule.exhaust = SOL_GROW;
	err = sol_rule_add(&dir->rule);
	if (err) {
		rule_free(dir);
		return ERR_PTR(err);
	}
	config_item_init_type_name(&dir->item, name, &rule_type);
	sol_status_ok();
	return &dir->item;
}

static void rules_drop_item(struct config_group *parent,
			    struct config_item *item)
{
	sol_rule_del(to_rule(item));
	config_item_put(item);
	sol_status_ok();
}

static struct configfs_group_operations rules_ops = {
	.make_item = rules_make_item,
	.drop_item = rules_drop_item,
};

const struct config_item_type sol_rules_type = {
	.ct_group_ops = &rules_ops,
	.ct_owner = THIS_MODULE,
};
