/* SPDX-License-Identifier: GPL-2.0 */
/* The directories of the control interface, docs/reference/interface.md. */
#ifndef SOLOIST_CONTROL_H
#define SOLOIST_CONTROL_H

#include <linux/configfs.h>
#include "../command/command.h"
#include "../group/group.h"

extern const struct config_item_type sol_groups_type;	/* groups.c */
void sol_control_groups_init(void);
extern const struct config_item_type sol_rules_type;	/* rules.c */
extern struct configfs_bin_attribute *sol_root_bin_attrs[];	/* implicit.c */

/**
 * sol_control_init() - make the directory soloist in configfs (root.c); may sleep
 *
 * Return: 0, or an errno; the kernel log says why.
 */
int sol_control_init(void);

/**
 * sol_control_exit() - remove it; nobody is inside
 */
void sol_control_exit(void);

/**
 * sol_control_add() - another module's directory beside groups/; may sleep
 * @dir: initialised, with its name and type
 *
 * Return: 0 or an errno.
 */
int sol_control_add(struct config_group *dir);

/**
 * sol_control_remove() - take it away; may sleep
 * @dir: that was added
 */
void sol_control_remove(struct config_group *dir);

/**
 * sol_control_guard_init() - put the directory guard/ into another (guard.c)
 * @parent: not registered yet
 *
 * Return: 0 or -ENOMEM.
 */
int sol_control_guard_init(struct config_group *parent);

/**
 * sol_control_guard_exit() - free it; the directory is gone, or was never registered
 */
void sol_control_guard_exit(void);

/* Names of enum sol_exhaust. */
extern const char *const sol_exhaust_name[SOL_N_EXHAUST];

/**
 * sol_control_exhaust() - read one of these names
 * @page: what was written
 * @count: its bytes
 * @exhaust: takes the enum sol_exhaust
 *
 * Return: 0; -EINVAL and words: no such name.
 */
int sol_control_exhaust(const char *page, size_t count, u8 *exhaust);

/**
 * sol_bandwidth_show() - a group's reservation, as its file `bandwidth` shows it
 * @group: the group
 * @page: takes at most a page
 *
 * Return: bytes that were written, or an errno.
 */
ssize_t sol_bandwidth_show(const struct sol_group *group, char *page);

/**
 * sol_bandwidth_store() - reserve for a group what its file `bandwidth` is written
 * @group: the group
 * @page: what was written
 * @count: its bytes
 *
 * Return: 0, or an errno and words.
 */
int sol_bandwidth_store(struct sol_group *group, const char *page,
			size_t count);

/*
 * Files that tell where memory lies or who shares it: root's to read, as the
 * kernel's own pagemap is (docs/reference/security.md).
 */
#define SOL_ATTR_SECRET(_pfx, _name)				\
static struct configfs_attribute _pfx##attr_##_name = {		\
	.ca_name	= __stringify(_name),			\
	.ca_mode	= 0600,					\
	.ca_owner	= THIS_MODULE,				\
	.show		= _pfx##_name##_show,			\
	.store		= _pfx##_name##_store,			\
}

#define SOL_ATTR_SECRET_RO(_pfx, _name)				\
static struct configfs_attribute _pfx##attr_##_name = {		\
	.ca_name	= __stringify(_name),			\
	.ca_mode	= 0400,					\
	.ca_owner	= THIS_MODULE,				\
	.show		= _pfx##_name##_show,			\
}

#define SOL_BIN_ATTR_SECRET(_pfx, _name)			\
static struct configfs_bin_attribute _pfx##attr_##_name = {	\
	.cb_attr = {						\
		.ca_name	= __stringify(_name),		\
		.ca_mode	= 0400,				\
		.ca_owner	= THIS_MODULE,			\
	},							\
	.read		= _pfx##_name##_read,			\
}

#endif /* SOLOIST_CONTROL_H */
