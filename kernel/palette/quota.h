/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many bank sets rules may give away: by rule, and by user. How many groups threads may
 * make for themselves.
 */
#ifndef SOLOIST_QUOTA_H
#define SOLOIST_QUOTA_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct sol_group;

/**
 * struct sol_quota - limits of a rule; its groups refer to it and may outlive it
 * @ref: the rule and these groups
 * @rcu: delays the freeing
 * @limit: bank sets of all its groups together; 0: half of the machine's
 * @user_limit: of all groups that any rule made for one user; 0: a quarter of
 *	the machine's. Root has none
 * @limited: times that a group got no bank set for one of these
 */
struct sol_quota {
	struct kref ref;
	struct rcu_head rcu;
	u32 limit;
	u32 user_limit;
	atomic64_t limited;
};

struct sol_quota *sol_quota_new(void);
struct sol_quota *sol_quota_get(struct sol_quota *quota);	/* under RCU; NULL: it ended */
void sol_quota_put(struct sol_quota *quota);	/* NULL: nothing */

/* The limits as they are set, or their defaults, which are @colors at least. */
u32 sol_quota_limit(const struct sol_quota *quota, u32 colors);
u32 sol_quota_user_limit(const struct sol_quota *quota, u32 colors);

/**
 * sol_quota_uid() - the user whose limit counts for the current task
 *
 * Return: the one that made its user namespace. Such a user has many numbers there, and each
 * would have a limit of its own.
 */
kuid_t sol_quota_uid(void);

/* @group, which is new, was made by the rule of @quota for user @uid. */
void sol_quota_begin(struct sol_group *group, struct sol_quota *quota,
		     kuid_t uid);

/**
 * sol_quota_make() - the current user's threads make one more group
 * @uid: becomes sol_quota_uid(), for the group's ->maker_uid
 *
 * Without CAP_SYS_ADMIN they have a limit, and so have all such users together. A group counts
 * until it is freed, so also while it is gone and has pages. May sleep.
 *
 * Return: 0; -ENOSPC or -ENOMEM and words.
 */
int sol_quota_make(kuid_t *uid);

/* It could not be made, or is freed. sol_group_mutex is held, or no other task uses it. */
void sol_quota_unmake(kuid_t uid);

/* @group goes. sol_group_mutex is held, or no other task uses it. */
void sol_quota_end(struct sol_group *group);

/**
 * sol_quota_check() - may a group have so many bank sets?
 * @group: sol_group_mutex is held
 * @n: bank sets in all
 *
 * Return: 0, or -EDQUOT and words.
 */
int sol_quota_check(const struct sol_group *group, u32 n);

/* Bank sets of all groups of @quota. */
u32 sol_quota_held(const struct sol_quota *quota);

#endif /* SOLOIST_QUOTA_H */
