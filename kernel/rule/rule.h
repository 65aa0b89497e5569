/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: programs and users that get colours automatically at exec (CAMC 3.4). */
#ifndef SOLOIST_RULE_H
#define SOLOIST_RULE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/path.h>
#include <linux/rcupdate.h>
#include <linux/uidgid.h>

#include "../group/group.h"

enum sol_rule_who {
	SOL_RULE_NOBODY,	/* not said yet */
	SOL_RULE_UID,
	SOL_RULE_ANY,
	SOL_RULE_REGISTERED,	/* users who called CAMC's mmap() */
};

/**
 * struct sol_rule_match - whom and what a rule matches; replaced as a whole
 * @rcu: delays the freeing
 * @who: users that it is for
 * @uid: the user, if @who is SOL_RULE_UID
 * @path: glob; "": not said yet
 */
struct sol_rule_match {
	struct rcu_head rcu;
	enum sol_rule_who who;
	kuid_t uid;
	char path[];
};

/**
 * struct sol_rule - one rule, which execs read under RCU
 * @link: list of all
 * @serial: of no other rule since load
 * @root: its maker's root directory, to compare with; paths are below that
 * @match: whom and what it matches, from sol_rule_add() on
 * @colors: bank sets for each process
 * @exhaust: enum sol_exhaust of its groups
 * @realtime: kept apart by controller
 * @enabled: it says whom and what
 * @matched: processes that got colours
 * @refused: processes that no colours were free for
 * @quota: what all its processes, and all of one user, may have
 * @name: of the directory
 */
struct sol_rule {
	struct list_head link;
	u64 serial;
	struct path root;
	struct sol_rule_match __rcu *match;
	u32 colors;
	u8 exhaust;
	bool realtime;
	bool enabled;
	atomic64_t matched;
	atomic64_t refused;
	struct sol_quota *quota;
	char name[SOL_GROUP_NAME];
};

/**
 * sol_rule_add() - execs ask a rule from now on
 * @rule: of nobody and no path yet
 *
 * Return: 0; -ENOMEM and words.
 */
int sol_rule_add(struct sol_rule *rule);

/* None asks @rule any more, but such as do already: it is freed a grace period later. */
void sol_rule_del(struct sol_rule *rule);

/* Set what @rule matches, or whether it does. Return: 0; -ENOMEM or -EINVAL and words. */
int sol_rule_set_user(struct sol_rule *rule, enum sol_rule_who who, kuid_t uid);
int sol_rule_set_path(struct sol_rule *rule, const char *path, size_t len);
int sol_rule_enable(struct sol_rule *rule, bool on);

u32 sol_rule_count(void);

/* CAMC: @n colours per process for user @uid, 0: no more. 0 or -ENOSPC. */
int sol_rule_register(kuid_t uid, u32 n);
u32 sol_rule_registered(void);

/* ---- Between rule.c and exec.c ---- */

/**
 * struct sol_rule_grant - what a rule grants to a process
 * @serial: of the rule, which may be removed meanwhile; 0: no rule matched
 * @colors: bank sets
 * @exhaust: enum sol_exhaust
 * @realtime: kept apart by controller
 * @quota: the rule's, referenced; NULL: no rule matched
 * @name: of the rule
 */
struct sol_rule_grant {
	u64 serial;
	u32 colors;
	u8 exhaust;
	bool realtime;
	struct sol_quota *quota;
	char name[SOL_GROUP_NAME];
};

/**
 * sol_rule_find() - the grant of the first rule that matches an exec
 * @given: the program's name as given
 * @path: of the file
 * @buf: of PATH_MAX bytes
 *
 * For the current user. May sleep. Return: the grant; put ->quota afterwards.
 */
struct sol_rule_grant sol_rule_find(const char *given, const struct path *path,
				    char *buf);

/**
 * sol_rule_group() - make a group with the colours of a grant
 * @grant: of a rule that matched, which counts the success or refusal
 *
 * May sleep. Return: the group with one reference; or an ERR_PTR, and words.
 */
struct sol_group *sol_rule_group(const struct sol_rule_grant *grant);

int sol_rules_init(void);	/* 0 or -ENOENT */
void sol_rules_exit(void);

/* ---- Load and unload ---- */

int sol_rule_init(void);
void sol_rule_exit(void);

#endif /* SOLOIST_RULE_H */
