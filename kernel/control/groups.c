// SPDX-License-Identifier: GPL-2.0
/*
 * groups/NAME/: the directory of a group and its list of files.
 *
 * Locking: configfs', see root.c.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../guard/guard.h"
#include "../migrate/evict.h"
#include "../migrate/recolor.h"
#include "../palette/life.h"
#include "../rule/cgroup.h"
#include "group.h"

CONFIGFS_ATTR_RO(sol_group_, id);
SOL_ATTR_SECRET(sol_group_, dram_bank);
SOL_ATTR_SECRET(sol_group_, bank_set);
SOL_ATTR_SECRET(sol_group_, llc_color);
SOL_ATTR_SECRET(sol_group_, node);
CONFIGFS_ATTR_WO(sol_group_, procs);
/* By hand: to the preprocessor `auto` is a word of its own. */
static struct configfs_attribute sol_group_attr_auto = {
	.ca_name = "auto",
	.ca_mode = 0200,
	.ca_owner = THIS_MODULE,
	.store = sol_group_auto_store,
};

CONFIGFS_ATTR(sol_group_, mode);
CONFIGFS_ATTR(sol_group_, exhaust);
CONFIGFS_ATTR(sol_group_, text);
CONFIGFS_ATTR(sol_group_, ephemeral);
CONFIGFS_ATTR(sol_group_, reserve);
CONFIGFS_ATTR(sol_group_, bandwidth);
SOL_ATTR_SECRET(sol_group_, cgroup);
SOL_ATTR_SECRET(sol_group_, tasks);
CONFIGFS_ATTR_RO(sol_group_, stats);
CONFIGFS_ATTR_RO(sol_group_, times);
SOL_ATTR_SECRET_RO(sol_group_, occupancy);
SOL_ATTR_SECRET(sol_group_, occupancy_all);
SOL_ATTR_SECRET(sol_group_, evict);
SOL_ATTR_SECRET(sol_group_, recolor);
SOL_BIN_ATTR_SECRET(sol_group_, members);

static struct configfs_attribute *group_attrs[] = {
	&sol_group_attr_id,
	&sol_group_attr_dram_bank,
	&sol_group_attr_bank_set,
	&sol_group_attr_llc_color,
	&sol_group_attr_node,
	&sol_group_attr_auto,
	&sol_group_attr_mode,
	&sol_group_attr_exhaust,
	&sol_group_attr_text,
	&sol_group_attr_ephemeral,
	&sol_group_attr_reserve,
	&sol_group_attr_bandwidth,
	&sol_group_attr_cgroup,
	&sol_group_attr_tasks,
	&sol_group_attr_procs,
	&sol_group_attr_stats,
	&sol_group_attr_times,
	&sol_group_attr_occupancy,
	&sol_group_attr_occupancy_all,
	&sol_group_attr_evict,
	&sol_group_attr_recolor,
	NULL,
};

static struct configfs_bin_attribute *group_bin_attrs[] = {
	&sol_group_attr_members,
	NULL,
};

/* ---- mkdir and rmdir ---- */

static void group_release(struct config_item *item)
{
	struct group_dir *dir = container_of(item, struct group_dir, item);

	sol_group_put(dir->group);
	kfree(dir);
}

static struct configfs_item_operations group_item_ops = {
	.release = group_release,
};

static const struct config_item_type group_type = {
	.ct_item_ops = &group_item_ops,
	.ct_attrs = group_attrs,
	.ct_bin_attrs = group_bin_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_item *groups_make_item(struct config_group *parent,
					    const char *name)
{
	struct group_dir *dir;
	struct sol_group *group;
	int err = sol_command_may(name, NULL, 0);

	if (err)
		return ERR_PTR(err);
	dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	if (!dir)
		return ERR_PTR(sol_no_memory(name));
	group = sol_group_new(name, false);
	if (IS_ERR(group)) {
		kfree(dir);
		return ERR_CAST(group);
	}
	spin_lock_init(&dir->lock);
	dir->group = group;
	config_item_init_type_name(&dir->item, name, &group_type);
	sol_status_ok();
	return &dir->item;
}

/* Other rooms forget a group that goes. */
static void forget(struct sol_group *group)
{
	sol_guard_disown(group);
	sol_cgroup_unbind(group);
	sol_evict_forget(group);
	sol_recolor_forget(group);
}

static void groups_drop_item(struct config_group *parent,
			     struct config_item *item)
{
	forget(sol_to_group(item));
	sol_group_remove(sol_to_group(item));
	config_item_put(item);
	sol_status_ok();
}

void sol_control_groups_init(void)
{
	sol_group_when_emptied(forget);
}

static struct configfs_group_operations groups_ops = {
	.make_item = groups_make_item,
	.drop_item = groups_drop_item,
};

const struct config_item_type sol_groups_type = {
	.ct_group_ops = &groups_ops,
	.ct_owner = THIS_MODULE,
};
