// SPDX-License-Identifier: GPL-2.0
/*
 * Quota: limits on what rules give away. Anybody may execute a program that a rule
 * names as often as they like, and with `grow` each process takes more and more. So
 * all groups of a rule together have a limit, and so have all groups that rules made
 * for one user, and others still find free colours.
 *
 * A removed group counts as long as it holds pages: its bank sets are not free for
 * automatic assignment either.
 *
 * Threads that make groups by themselves (control/mmap_abi.c) have a limit, too. It is asked
 * as often as anybody likes, so their groups are counted rather than looked for.
 *
 * Locking: sol_group_mutex guards the list and the counts.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>
#include "../group/group.h"
#include "../command/status.h"
#include "map.h"
#include "quota.h"

/*
 * Groups that threads of one user without CAP_SYS_ADMIN may make, whatever ids it has in
 * namespaces of its own (subuid), and those of all users; there are 65,535 groups.
 */
#define USER_GROUPS	64u
#define ALL_USERS_GROUPS	4096u

static LIST_HEAD(ruled);	/* all groups that rules made */
static DEFINE_XARRAY(makers);	/* by user: how many groups its threads made, if any */
static u32 n_made;

struct sol_quota *sol_quota_new(void)
{
	struct sol_quota *quota = kzalloc(sizeof(*quota), GFP_KERNEL);

	if (quota)
		kref_init(&quota->ref);
	return quota;
}

struct sol_quota *sol_quota_get(struct sol_quota *quota)
{
	return kref_get_unless_zero(&quota->ref) ? quota : NULL;
}

static void quota_free(struct kref *ref)
{
	kfree_rcu(container_of(ref, struct sol_quota, ref), rcu);
}

void sol_quota_put(struct sol_quota *quota)
{
	if (quota)
		kref_put(&quota->ref, quota_free);
}

static u32 or_part(u32 limit, u32 part, u32 colors)
{
	const struct sol_map *map = sol_map_in_use();

	return limit ?: max3(map ? map->n_bank_sets / part : 0, colors, 1u);
}

u32 sol_quota_limit(const struct sol_quota *quota, u32 colors)
{
	return or_part(READ_ONCE(quota->limit), 2, colors);
}

u32 sol_quota_user_limit(const struct sol_quota *quota, u32 colors)
{
	return or_part(READ_ONCE(quota->user_limit), 4, colors);
}

kuid_t sol_quota_uid(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_uid();

	for (; ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

void sol_quota_begin(struct sol_group *group, struct sol_quota *quota,
		     kuid_t uid)
{
	mutex_lock(&sol_group_mutex);
	group->quota = sol_quota_get(quota);
	group->maker_uid = uid;
	list_add(&group->ruled, &ruled);
	mutex_unlock(&sol_group_mutex);
}

/* ---- Groups that threads make ---- */

static u32 made_by(kuid_t uid)
{
	const void *n = xa_load(&makers, __kuid_val(uid));

	return n ? xa_to_value(n) : 0;
}

static int one_more(kuid_t uid, bool limited)
{
	u32 n = made_by(uid);

	if (limited && n >= USER_GROUPS)
		return sol_deny(-ENOSPC,
				"mmap: %u threads of this user have colours of their own, no more may",
				USER_GROUPS);
	if (limited && n_made >= ALL_USERS_GROUPS)
		return sol_deny(-ENOSPC,
				"mmap: %u threads have colours of their own, no more may",
				ALL_USERS_GROUPS);
	if (xa_is_err(xa_store(&makers, __kuid_val(uid), xa_mk_value(n + 1), GFP_KERNEL)))
		return sol_no_memory("mmap");
	n_made++;
	return 0;
}

int sol_quota_make(kuid_t *uid)
{
	bool limited = !capable(CAP_SYS_ADMIN);
	int err;

	*uid = sol_quota_uid();
	mutex_lock(&sol_group_mutex);
	err = one_more(*uid, limited);
	mutex_unlock(&sol_group_mutex);
	return err;
}

/* To store a smaller number takes no memory. */
void sol_quota_unmake(kuid_t uid)
{
	u32 n = made_by(uid);

	if (n > 1)
		xa_store(&makers, __kuid_val(uid), xa_mk_value(n - 1), GFP_ATOMIC);
	else
		xa_erase(&makers, __kuid_val(uid));
	n_made--;
}

/* ---- The end of a group ---- */

void sol_quota_end(struct sol_group *group)
{
	if (group->maker)
		sol_quota_unmake(group->maker_uid);
	if (!group->quota)
		return;
	list_del(&group->ruled);
	sol_quota_put(group->quota);
	group->quota = NULL;
}

static u32 held_by(const struct sol_group *group)
{
	if (!group->dead)
		return group->n_sets;
	return min_t(u64, group->n_sets, sol_group_used(group));
}

int sol_quota_check(const struct sol_group *group, u32 n)
{
	u32 of_rule = 0, of_user = 0, limit, user_limit;
	const struct sol_group *other;
	kuid_t uid = group->maker_uid;

	if (!group->quota)
		return 0;
	list_for_each_entry(other, &ruled, ruled) {
		u32 held = other == group ? 0 : held_by(other);

		if (other->quota == group->quota)
			of_rule += held;
		if (uid_eq(other->maker_uid, uid))
			of_user += held;
	}
	limit = sol_quota_limit(group->quota, n);
	if (of_rule + n > limit)
		return sol_deny(-EDQUOT,
			"%s: the rule's other processes have %u bank sets, %u more would pass its limit of %u",
			group->name, of_rule, n, limit);
	user_limit = sol_quota_user_limit(group->quota, n);
	if (!uid_eq(uid, GLOBAL_ROOT_UID) && of_user + n > user_limit)
		return sol_deny(-EDQUOT,
			"%s: rules gave user %u %u bank sets for other processes, %u more would pass user_limit %u",
			group->name, from_kuid(&init_user_ns, uid), of_user, n,
			user_limit);
	return 0;
}

u32 sol_quota_held(const struct sol_quota *quota)
{
	const struct sol_group *group;
	u32 sum = 0;

	mutex_lock(&sol_group_mutex);
	list_for_each_entry(group, &ruled, ruled)
		if (group->quota == quota)
			sum += held_by(group);
	mutex_unlock(&sol_group_mutex);
	return sum;
}
