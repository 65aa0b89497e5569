// SPDX-License-Identifier: GPL-2.0
/*
 * The control interface: configfs, as docs/reference/interface.md has it.
 *
 * This file has the root's files; the other directories have files of their own. Each
 * write is one command: it is checked, done as a whole or not at all, and leaves "ok" or
 * a sentence in last_cmd_status. configfs pins the module for every directory that was
 * made, so that the module can be unloaded only after the last rmdir.
 *
 * Locking: configfs calls a directory's files under its fragment's semaphore, so that a
 * file is never called after its directory was removed. All other locks nest inside;
 * they are in the rooms below.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include "control.h"
#include "moves.h"
#include "mmap_abi.h"
#include "../rule/rule.h"
#include "../command/status.h"
#include "../keep/keep.h"
#include "../frames/evacuate.h"
#include "../frames/giveback.h"
#include "../frames/prefill.h"
#include "../hook/table.h"
#include "../palette/map.h"
#include "../uapi/soloist.h"

/*
 * Outside of sol_group_mutex: filling and draining lists takes long, and the map must
 * stay meanwhile. Faults that grow a group need not wait for it.
 */
static DEFINE_MUTEX(lists_mutex);

static enum lists { LISTS_DEMAND, LISTS_ALL, LISTS_DRAIN } lists_mode;	/* under lists_mutex */

/* Filling may take minutes: a task that waits for it can be interrupted. */
static int lists_lock(const char *what)
{
	if (!mutex_lock_interruptible(&lists_mutex))
		return 0;
	return sol_deny(-EINTR,
			"%s: interrupted while the lists are filled or emptied",
			what);
}

static ssize_t root_map_show(struct config_item *item, char *page)
{
	const struct sol_map *map;
	ssize_t n = 0;

	mutex_lock(&sol_group_mutex);
	map = sol_map_in_use();
	if (map)
		n = min_t(size_t, sol_map_print(map, page, SOL_FILE_SIZE),
			  SOL_FILE_SIZE - 1);
	mutex_unlock(&sol_group_mutex);
	return n;
}

static int map_store(const char *page, size_t count)
{
	int err;

	if (sol_rule_count())
		return sol_deny(-EBUSY, "map: %u rules exist; remove them first",
				sol_rule_count());
	err = lists_lock("map");
	if (err)
		return err;
	err = sol_map_use(page, count);
	if (!err)
		WRITE_ONCE(lists_mode, LISTS_DEMAND);	/* they are empty now */
	mutex_unlock(&lists_mutex);
	return err;
}

static ssize_t root_map_store(struct config_item *item, const char *page,
			      size_t count)
{
	int err = sol_command_may("map", page, count);

	return sol_status_done(err ?: map_store(page, count), count);
}

static ssize_t root_last_cmd_status_show(struct config_item *item, char *page)
{
	return sol_status_show(page);
}

static ssize_t root_features_show(struct config_item *item, char *page)
{
	char lacks[512];

	sol_table_lacks(lacks, sizeof(lacks));
	return sysfs_emit(page,
			  "abi %u\nkernel %s\ngeneration %u\nhooks %s\nlacks %s\nthp %s\nmmap_abi %d\nmax_groups %u\nreserve yes\nrules yes\n",
			  SOLOIST_ABI, init_utsname()->release, sol_generation,
			  *lacks == '-' ? "ok" : "partial", lacks,
			  IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) ? "yes" : "no",
			  sol_mmap_abi_level(), SOL_MAX_GROUPS);
}

static ssize_t root_stats_show(struct config_item *item, char *page)
{
	struct sol_group_count groups;
	struct sol_store_stats store;
	struct sol_move_stats move;

	sol_group_count(&groups);
	sol_store_stats(&store);
	sol_move_sum(&move);
	return sysfs_emit(page,
		"groups %u\nimplicit %u\nremoved %u\nrules %u\nregistered %u\nlisted %llu\nzero %llu\nused %llu\ntaken %llu\ngiven %llu\nlost %llu\nkept %llu\nreplaced %llu\nmoved %llu\nunswapped %llu\nswapped %llu\nunmerged %llu\nuncollapsed %llu\nkept_reserve %llu\nunkept %llu\nevacuated %llu\n",
		groups.named, groups.implicit, groups.dead, sol_rule_count(),
		sol_rule_registered(), store.listed, store.zero, store.used,
		store.taken, store.given, store.lost, move.kept, move.replaced,
		move.moved, move.unswapped, move.swapped, move.unmerged,
		move.uncollapsed, store.kept, store.unkept, sol_evacuated());
}

/* ---- lists: how many frames are kept ---- */

static const char *const lists_name[] = {
	[LISTS_DEMAND] = "demand", [LISTS_ALL] = "all", [LISTS_DRAIN] = "drain",
};

static ssize_t root_lists_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", lists_name[READ_ONCE(lists_mode)]);
}

static int lists_store(const char *page)
{
	int mode = sysfs_match_string(lists_name, page), err;

	if (mode < 0)
		return sol_deny(-EINVAL,
				"lists: expected demand, all or drain");
	if (!sol_map_in_use())
		return sol_deny(-ENXIO,
				"lists: no address map yet; write one to map first");
	err = lists_lock("lists");
	if (err)
		return err;
	if (mode == LISTS_ALL && !sol_store_fill_all())
		err = sol_deny(-EINTR, "lists: killed before all free memory was listed");
	if (mode == LISTS_DRAIN)
		sol_store_drain_all();
	if (!err)
		WRITE_ONCE(lists_mode, mode == LISTS_DRAIN ? LISTS_DEMAND : mode);
	mutex_unlock(&lists_mutex);
	return err;
}

static ssize_t root_lists_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = sol_command_may("lists", page, count);

	return sol_status_done(err ?: lists_store(page), count);
}

SOL_ATTR_SECRET(root_, map);
CONFIGFS_ATTR_RO(root_, last_cmd_status);
CONFIGFS_ATTR_RO(root_, features);
CONFIGFS_ATTR_RO(root_, stats);
SOL_ATTR_SECRET(root_, lists);
SOL_ATTR_SECRET(sol_root_, evict);
SOL_ATTR_SECRET(sol_root_, recolor);

static struct configfs_attribute *root_attrs[] = {
	&root_attr_map,
	&root_attr_last_cmd_status,
	&root_attr_features,
	&root_attr_stats,
	&root_attr_lists,
	&sol_root_attr_evict,
	&sol_root_attr_recolor,
	NULL,
};

static const struct config_item_type root_type = {
	.ct_attrs = root_attrs,
	.ct_bin_attrs = sol_root_bin_attrs,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem root = {
	.su_group.cg_item = {
		.ci_namebuf = "soloist",
		.ci_type = &root_type,
	},
};

static struct config_group groups_dir, rules_dir;

int sol_control_init(void)
{
	int err;

	mutex_init(&root.su_mutex);
	config_group_init(&root.su_group);
	sol_control_groups_init();
	config_group_init_type_name(&groups_dir, "groups", &sol_groups_type);
	configfs_add_default_group(&groups_dir, &root.su_group);
	config_group_init_type_name(&rules_dir, "rules", &sol_rules_type);
	configfs_add_default_group(&rules_dir, &root.su_group);
	err = sol_control_guard_init(&root.su_group);
	if (err)
		return err;
	err = configfs_register_subsystem(&root);
	if (err) {
		pr_err("configfs took no directory 'soloist' (%d)\n", err);
		sol_control_guard_exit();
	}
	return err;
}

void sol_control_exit(void)
{
	configfs_unregister_subsystem(&root);
	sol_control_guard_exit();
	flush_work(&sol_emptied_work);	/* it uses what goes next */
}

int sol_control_add(struct config_group *dir)
{
	return configfs_register_group(&root.su_group, dir);
}
EXPORT_SYMBOL_GPL(sol_control_add);

void sol_control_remove(struct config_group *dir)
{
	configfs_unregister_group(dir);
}
EXPORT_SYMBOL_GPL(sol_control_remove);
