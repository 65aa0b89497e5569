/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The files of groups/NAME/. groups.c has the directory and the list of files;
 * group_colors.c, group_policy.c, group_tasks.c and group_memory.c read and write
 * them.
 */
#ifndef SOLOIST_CONTROL_GROUP_H
#define SOLOIST_CONTROL_GROUP_H

#include "../group/group.h"
#include "../occupancy/occupancy.h"
#include "control.h"

/**
 * struct group_dir - a directory of groups/
 * @item: as configfs has it
 * @group: that it is of, with a reference
 * @lock: for @all
 * @all: the last look at all frames
 */
struct group_dir {
	struct config_item item;
	struct sol_group *group;
	spinlock_t lock;
	struct sol_occupancy all;
};

static inline struct group_dir *sol_to_group_dir(struct config_item *item)
{
	return container_of(item, struct group_dir, item);
}

static inline struct sol_group *sol_to_group(struct config_item *item)
{
	return sol_to_group_dir(item)->group;
}

/**
 * sol_group_colored() - the result of a file's store() that changed colours
 * @group: the group
 * @err: 0, or an errno with words
 * @count: bytes that were written
 *
 * The sentence says if the group's reserve lacks frames in its colours now.
 *
 * Return: as sol_status_done().
 */
ssize_t sol_group_colored(struct sol_group *group, int err, size_t count);

/*
 * Reading and writing each file, as configfs calls it: may sleep. A show writes at most a
 * page and returns its bytes; a store returns @count; both else an errno, and a store
 * words in last_cmd_status. docs/reference/interface.md says what each takes.
 */
ssize_t sol_group_dram_bank_show(struct config_item *item, char *page);
ssize_t sol_group_bank_set_show(struct config_item *item, char *page);
ssize_t sol_group_llc_color_show(struct config_item *item, char *page);
ssize_t sol_group_node_show(struct config_item *item, char *page);
ssize_t sol_group_dram_bank_store(struct config_item *item, const char *page,
				  size_t count);
ssize_t sol_group_bank_set_store(struct config_item *item, const char *page,
				 size_t count);
ssize_t sol_group_llc_color_store(struct config_item *item, const char *page,
				  size_t count);
ssize_t sol_group_node_store(struct config_item *item, const char *page,
			     size_t count);
ssize_t sol_group_auto_store(struct config_item *item, const char *page,
			     size_t count);
ssize_t sol_group_mode_show(struct config_item *item, char *page);
ssize_t sol_group_mode_store(struct config_item *item, const char *page,
			     size_t count);
ssize_t sol_group_exhaust_show(struct config_item *item, char *page);
ssize_t sol_group_exhaust_store(struct config_item *item, const char *page,
				size_t count);
ssize_t sol_group_text_show(struct config_item *item, char *page);
ssize_t sol_group_text_store(struct config_item *item, const char *page,
			     size_t count);
ssize_t sol_group_ephemeral_show(struct config_item *item, char *page);
ssize_t sol_group_ephemeral_store(struct config_item *item, const char *page,
				  size_t count);
ssize_t sol_group_reserve_show(struct config_item *item, char *page);
ssize_t sol_group_reserve_store(struct config_item *item, const char *page,
				size_t count);
ssize_t sol_group_bandwidth_show(struct config_item *item, char *page);
ssize_t sol_group_bandwidth_store(struct config_item *item, const char *page,
				  size_t count);
ssize_t sol_group_cgroup_show(struct config_item *item, char *page);
ssize_t sol_group_cgroup_store(struct config_item *item, const char *page,
			       size_t count);
ssize_t sol_group_id_show(struct config_item *item, char *page);
ssize_t sol_group_tasks_show(struct config_item *item, char *page);
ssize_t sol_group_members_read(struct config_item *item, void *buf, size_t size);
ssize_t sol_group_tasks_store(struct config_item *item, const char *page,
			      size_t count);
ssize_t sol_group_procs_store(struct config_item *item, const char *page,
			      size_t count);
ssize_t sol_group_stats_show(struct config_item *item, char *page);
ssize_t sol_group_times_show(struct config_item *item, char *page);
ssize_t sol_group_occupancy_show(struct config_item *item, char *page);
ssize_t sol_group_occupancy_all_show(struct config_item *item, char *page);
ssize_t sol_group_occupancy_all_store(struct config_item *item,
				      const char *page, size_t count);
ssize_t sol_group_evict_show(struct config_item *item, char *page);
ssize_t sol_group_evict_store(struct config_item *item, const char *page,
			      size_t count);
ssize_t sol_group_recolor_show(struct config_item *item, char *page);
ssize_t sol_group_recolor_store(struct config_item *item, const char *page,
				size_t count);

#endif /* SOLOIST_CONTROL_GROUP_H */
