// SPDX-License-Identifier: GPL-2.0
/*
 * The files of what lies in a group's colours: occupancy, evict and recolor.
 *
 * Locking: none of its own. A file shows the state of a moment. Evicting and recolouring
 * last long: other files work meanwhile, and removing the group ends them (job.c).
 */
#include <linux/dcache.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../migrate/evict.h"
#include "../migrate/recolor.h"
#include "../occupancy/occupancy.h"
#include "group.h"
#include "moves.h"

ssize_t sol_group_occupancy_show(struct config_item *item, char *page)
{
	struct sol_occupancy o;
	ssize_t n = 0;
	int err, i;

	err = sol_occupancy_take(sol_to_group(item), &o);
	if (err)
		return sol_deny(err, err == -EINTR ?
				"occupancy: interrupted by a signal" :
				"occupancy: no memory for the colours");
	for (i = 0; i < SOL_N_HELD; i++)
		n += sysfs_emit_at(page, n, "%s %llu\n", sol_holder_name[i],
				   o.held[i]);
	return n + sysfs_emit_at(page, n,
		"pinned %llu\nunevictable %llu\nlooked %llu\none_of %u\ntook_us %llu\n",
		o.pinned, o.unevictable, o.looked, o.one_of, o.took_us);
}

/* ---- evict: 1 [rate=BYTES] [isolated] ---- */

static int evict_store(struct sol_group *group, struct inode *dir,
		       const char *page, size_t count)
{
	struct moves_words w = { .first_is = "1", .how.dir = dir };
	int err = sol_moves_parse("evict", page, count, &w);

	if (!err && w.first != 1)
		err = sol_deny(-EINVAL, "evict: expected 1, not %u", w.first);
	return err ?: sol_evict(group, &w.how);
}

ssize_t sol_group_evict_store(struct config_item *item, const char *page,
			      size_t count)
{
	int err = sol_command_may("evict", count);

	return sol_status_done(err ?: evict_store(sol_to_group(item),
						  d_inode(item->ci_dentry),
						  page, count), count);
}

ssize_t sol_group_evict_show(struct config_item *item, char *page)
{
	return sol_evict_show(sol_to_group(item), page);
}

/* ---- recolor: a process id, or 0 for all of the group; [rate=BYTES] [isolated] ---- */

static int recolor_store(struct sol_group *group, struct inode *dir,
			 const char *page, size_t count)
{
	struct moves_words w = { .first_is = "a process id, or 0 for all",
				 .how.dir = dir };
	int err = sol_moves_parse("recolor", page, count, &w);

	if (!err && w.first > INT_MAX)
		err = sol_deny(-EINVAL, "recolor: '%u' is no process id", w.first);
	return err ?: sol_moves_recolor(group, w.first, &w.how);
}

ssize_t sol_group_recolor_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = sol_command_may("recolor", count);

	return sol_status_done(err ?: recolor_store(sol_to_group(item),
						    d_inode(item->ci_dentry),
						    page, count), count);
}

ssize_t sol_group_recolor_show(struct config_item *item, char *page)
{
	return sol_recolor_show(sol_to_group(item), page);
}
