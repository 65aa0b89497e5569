/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: programs and users that get colours automatically at exec (CAMC 3.4). */
#ifndef SOLOIST_RULE_H
#define SOLOIST_RULE_H

#include <linux/list.h>
#include <linux/path.h>
#include <linux/uidgid.h>

enum sol_rule_who {
	SOL_RULE_NOBODY,	/* not said yet */
	SOL_RULE_UID,
	SOL_RULE_ANY,
	SOL_RULE_REGISTERED,	/* users who called CAMC's mmap() */
};

/**
 * struct sol_rule - one rule; guarded by sol_rule_lock()
 * @link: list of all
 * @serial: of no other rule since load
 * @root: its maker's root directory; paths are below that
 * @who: users that it is for
 * @uid: the user, if @who is SOL_RULE_UID
 * @path: glob; NULL: not said yet
 * @colors: bank sets for each process
 * @exhaust: enum sol_exhaust of its groups
 * @realtime: kept apart by controller
 * @enabled: needs @who and @path
 * @matched: processes that got colours
 * @refused: processes that no colours were free for
 * @quota: what all its processes, and all of one user, may have
 * @name: of the directory
 */
struct sol_rule {
	struct list_head link;
	u64 serial;
	struct path root;
	enum sol_rule_who who;
	kuid_t uid;
	char *path;
	u32 colors;
	u8 exhaust;
	bool realtime;
	bool enabled;
	u64 matched;
	u64 refused;
	struct sol_quota *quota;
	const char *name;
};

/* Lock all rules, to read or write one. May sleep. */
void sol_rule_lock(void);
void sol_rule_unlock(void);

void sol_rule_add(struct sol_rule *rule);
void sol_rule_del(struct sol_rule *rule);
u32 sol_rule_count(void);

/* CAMC: @n colours per process for user @uid, 0: no more. 0 or -ENOSPC. */
int sol_rule_register(kuid_t uid, u32 n);
u32 sol_rule_registered(void);

int sol_rule_init(void);
void sol_rule_exit(void);

#endif /* SOLOIST_RULE_H */
