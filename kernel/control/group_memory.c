// SPDX-License-Identifier: GPL-2.0
/*
 * The files of what lies in a group's colours: occupancy, occupancy_all, evict, recolor.
 *
 * Locking: a lock for the last whole look. A file shows the state of a moment. Looking at
 * all frames, evicting and recolouring last long: other files work meanwhile, and removing
 * the group ends them (command/rmdir.h).
 */
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../migrate/evict.h"
#include "../migrate/recolor.h"
#include "../palette/reap.h"
#include "group.h"
#include "moves.h"

static int take(struct config_item *item, bool all, struct sol_occupancy *o)
{
	struct sol_group *group = sol_to_group(item);
	int err = sol_occupancy_take(group, item, all, o);

	switch (err) {
	case 0:
		return 0;
	case -EINTR:
		return sol_deny(err, "occupancy: interrupted by a signal");
	case -ENOENT:
		return sol_deny(err, "occupancy: %s was removed", group->name);
	default:
		return sol_deny(err, "occupancy: no memory for the colours");
	}
}

static ssize_t show(const struct sol_occupancy *o, char *page)
{
	ssize_t n = 0;
	int i;

	for (i = 0; i < SOL_N_HELD; i++)
		n += sysfs_emit_at(page, n, "%s %llu\n", sol_holder_name[i],
				   o->held[i]);
	return n + sysfs_emit_at(page, n,
		"pinned %llu\nunevictable %llu\nlooked %llu\none_of %u\ntook_us %llu\n",
		o->pinned, o->unevictable, o->looked, o->one_of, o->took_us);
}

ssize_t sol_group_occupancy_show(struct config_item *item, char *page)
{
	struct sol_occupancy o;

	return take(item, false, &o) ?: show(&o, page);
}

/* ---- occupancy_all: 1 ---- */

/* Of looks at one time the last one to begin stays: it is no older than any writer's. */
static int look_at_all(struct config_item *item)
{
	struct group_dir *dir = sol_to_group_dir(item);
	struct sol_occupancy o;
	int err;

	/* Pages of ended tasks that wait in a CPU's batch are nobody's. */
	sol_reap_drain(false);
	err = take(item, true, &o);
	if (err)
		return err;
	spin_lock(&dir->lock);
	if (ktime_compare(o.began, dir->all.began) >= 0)
		dir->all = o;
	spin_unlock(&dir->lock);
	return 0;
}

ssize_t sol_group_occupancy_all_store(struct config_item *item,
				      const char *page, size_t count)
{
	int err = sol_command_may("occupancy_all", page, count);
	u64 one;

	if (!err)
		err = sol_command_number("occupancy_all", page, 1, &one);
	if (!err && one != 1)
		err = sol_deny(-EINVAL, "occupancy_all: expected 1, not 0");
	return sol_status_done(err ?: look_at_all(item), count);
}

ssize_t sol_group_occupancy_all_show(struct config_item *item, char *page)
{
	struct group_dir *dir = sol_to_group_dir(item);
	struct sol_occupancy o;
	ssize_t n;

	spin_lock(&dir->lock);
	o = dir->all;
	spin_unlock(&dir->lock);
	n = show(&o, page);
	return n + sysfs_emit_at(page, n, "age_ms %lld\n",
				 ktime_ms_delta(ktime_get(), o.began));
}

/* ---- evict: 1 [rate=BYTES] [isolated] ---- */

static int evict_store(struct sol_group *group, const struct config_item *dir,
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
	int err = sol_command_may("evict", page, count);

	return sol_status_done(err ?: evict_store(sol_to_group(item), item,
						  page, count), count);
}

ssize_t sol_group_evict_show(struct config_item *item, char *page)
{
	return sol_evict_show(sol_to_group(item), page);
}

/* ---- recolor: a process id, or 0 for all of the group; [rate=BYTES] [isolated] ---- */

static int recolor_store(struct sol_group *group, const struct config_item *dir,
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
	int err = sol_command_may("recolor", page, count);

	return sol_status_done(err ?: recolor_store(sol_to_group(item), item,
						    page, count), count);
}

ssize_t sol_group_recolor_show(struct config_item *item, char *page)
{
	return sol_recolor_show(sol_to_group(item), page);
}
