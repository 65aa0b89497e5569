// SPDX-License-Identifier: GPL-2.0
/*
 * Colours of a group: set, assigned, grown, and frames reserved in them.
 *
 * Each change makes a new colour set beside the old one and takes it as a whole
 * or not at all. Pages that are placed stay where they are.
 *
 * Locking: sol_group_mutex, which nests inside mmap_lock (a fault may grow a
 * group), so that nothing under it may touch user memory.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../frames/giveback.h"
#include "../frames/cpu_list.h"
#include "../frames/prefill.h"
#include "../group/member.h"
#include "../group/tasks.h"
#include "cells.h"
#include "colors.h"
#include "map.h"
#include "quota.h"
#include "reap.h"

/* The colours that the palette knows of: a group that does not colour owns none. */
static const struct sol_colors *owned(const struct sol_colors *colors)
{
	return sol_colors_restrict(colors) ? colors : NULL;
}

/* ---- Reserve ---- */

/* The shrinker leaves @group so many frames from now on. */
static void keep(struct sol_group *group, u64 frames)
{
	mutex_lock(&sol_group_mutex);
	if (!group->dead) {
		WRITE_ONCE(group->reserve, frames);
		sol_cells_reserve(group);
	}
	mutex_unlock(&sol_group_mutex);
}

/**
 * sol_group_reserve_begin() - keep others from a group's reserve
 * @group: referenced by the caller
 *
 * Filling takes long, and a reserve that can't be filled becomes what it was. Of two at a time
 * one would undo what the other had done.
 *
 * Return: 0: sol_group_reserve_end() must follow; -EBUSY and words.
 */
int sol_group_reserve_begin(struct sol_group *group)
{
	if (!xchg(&group->reserving, true))
		return 0;
	return sol_deny(-EBUSY, "reserve: another write fills that of %s; wait for it, or end it",
			group->name);
}

void sol_group_reserve_end(struct sol_group *group)
{
	/* The next one finds the reserve as we left it. */
	smp_store_release(&group->reserving, false);
}

/**
 * sol_group_reserve() - keep frames in a group's lists
 * @group: after sol_group_reserve_begin()
 * @dir: its directory
 * @frames: how many; 0: none
 *
 * The frames are zeroed, and the shrinker leaves so many alone from then on.
 *
 * Return: how many frames are listed now, but for other groups' reserves; -ENOMEM and words.
 * If fewer than @frames, the reserve is as it was.
 */
s64 sol_group_reserve(struct sol_group *group, const struct config_item *dir, u64 frames)
{
	u64 before = READ_ONCE(group->reserve);
	s64 have;

	if (!frames) {
		keep(group, 0);
		return 0;
	}
	/* Else the shrinker of a full machine takes frames while others still come. */
	keep(group, max(frames, before));
	have = sol_store_reserve(group, dir, frames);
	keep(group, have < (s64)frames ? before : frames);
	return have < 0 ? sol_no_memory("reserve") : have;
}

/* ---- Setting ---- */

/* What address spaces of a group's tasks go by (group/space.c). */
struct stay {
	bool colors;
	bool huge_ok;
};

static struct stay stay_of(const struct sol_group *group)
{
	return (struct stay){
		.colors = rcu_access_pointer(group->cells),
		.huge_ok = READ_ONCE(group->huge_ok),
	};
}

/*
 * After a change, without sol_group_mutex: this takes mmap_lock, and may take long. @dir as of
 * sol_group_edit(). @tasks: room for the group's.
 */
static void recolored(struct sol_group *group, const struct config_item *dir, struct stay before,
		      struct sol_tasks *tasks)
{
	struct stay now = stay_of(group);

	if (now.colors != before.colors || now.huge_ok != before.huge_ok)
		sol_member_stay_all(group, tasks);
	if (READ_ONCE(group->reserve))
		sol_store_reserve(group, dir, group->reserve);
}

static int recolor(struct sol_group *group, const struct sol_colors *colors)
{
	const struct sol_map *map = sol_map_in_use();
	struct sol_cells *cells;
	struct sol_err err;
	int ret;

	lockdep_assert_held(&sol_group_mutex);
	ret = sol_group_check_living(group);
	if (ret)
		return ret;
	cells = sol_cells_new(colors);
	if (IS_ERR(cells))
		return sol_deny(-ENOMEM, "%s: no memory for %u cells",
				  group->name, map->n_cells);
	ret = sol_member_check_all(group, cells);
	if (ret)
		goto refuse;
	ret = sol_palette_change(&sol_palette, owned(&group->colors),
				 owned(colors), &err);
	if (ret) {
		sol_deny(ret, "%s: %s", group->name, err.text);
		goto refuse;
	}
	sol_colors_copy(map, &group->colors, colors);
	group->n_sets = bitmap_weight(colors->sets, map->n_bank_sets);
	WRITE_ONCE(group->huge_ok,
		   colors->by_bank && !colors->by_llc &&
		   sol_map_block_order(map, colors->sets) >=
			   sol_huge_order(map));
	sol_cells_publish(group, cells);
	return 0;
refuse:
	kvfree(cells);
	return ret;
}

/**
 * sol_group_edit() - give a group other colours
 * @group: may have tasks; pages that are placed stay where they are
 * @dir: its directory, or NULL: who removes that does not wait for the reserve
 * @edit: changes a copy of the group's colours; 0, or an errno with words
 * @arg: for @edit
 *
 * Return: 0; what @edit says; -EBUSY if an exclusive group has one of them;
 * -EINVAL if no page can have them or a task of the group may not use their
 * nodes; -ENOENT if the group was removed. Refused, nothing has changed, and
 * there are words.
 */
int sol_group_edit(struct sol_group *group, const struct config_item *dir,
		   int (*edit)(struct sol_colors *colors, const void *arg),
		   const void *arg)
{
	const struct sol_map *map = sol_map_in_use();
	struct stay before = stay_of(group);
	struct sol_tasks *tasks = sol_tasks_new(sol_group_tasks(group));
	struct sol_colors *colors;
	int err;

	if (!tasks)
		return sol_no_memory(group->name);
	mutex_lock(&sol_group_mutex);
	colors = sol_colors_new(map);
	err = colors ? 0 : sol_no_memory(group->name);
	if (colors) {
		sol_colors_copy(map, colors, &group->colors);
		err = edit(colors, arg);
		if (!err)
			err = recolor(group, colors);
	}
	sol_colors_free(colors);
	mutex_unlock(&sol_group_mutex);
	if (!err)
		recolored(group, dir, before, tasks);
	sol_tasks_free(tasks);
	return err;
}

/* ---- Assigning ---- */

/*
 * Find free colours for @want. A bank set that nobody owns may have pages in use, or
 * only in per-CPU lists: then these are flushed once.
 */
static int palette_assign(const struct sol_want *want, struct sol_colors *out,
			  struct sol_err *err)
{
	const struct sol_map *map = sol_map_in_use();
	u32 set;

	for (set = 0; set < map->n_bank_sets; set++)
		if (!sol_palette.set[set].owners && sol_store_used_in(NULL, set)) {
			sol_cpu_lists_flush();
			break;
		}
	return sol_palette_assign(&sol_palette, want, out, err);
}

/* Free colours for @want into @out, as if @group owned none. */
static int assign(struct sol_group *group, const struct sol_want *want,
		  struct sol_colors *out)
{
	const struct sol_colors *own = owned(&group->colors);
	struct sol_err err, ignored;
	int ret = sol_quota_check(group, want->n_sets);

	if (ret)
		return ret;
	if (own)
		sol_palette_change(&sol_palette, own, NULL, &ignored);
	ret = palette_assign(want, out, &err);
	/* This does not fail: nobody else could take them meanwhile. */
	if (own)
		WARN_ON(sol_palette_change(&sol_palette, NULL, own, &ignored));
	if (ret)
		return sol_deny(ret, "%s: %s", group->name, err.text);
	out->by_bank = true;
	out->by_llc = want->n_llc > 0;
	out->exclusive = true;
	out->realtime = want->realtime;
	return 0;
}

static int auto_once(struct sol_group *group, const struct sol_want *want)
{
	const struct sol_map *map = sol_map_in_use();
	struct sol_colors *out;
	int err;

	mutex_lock(&sol_group_mutex);
	out = sol_colors_new(map);
	err = out ? 0 : sol_no_memory(group->name);
	if (out) {
		err = assign(group, want, out);
		if (!err)
			err = recolor(group, out);
	}
	sol_colors_free(out);
	mutex_unlock(&sol_group_mutex);
	return err;
}

/**
 * sol_group_auto() - replace a group's colours by free ones (CAMC 3.4)
 * @group: becomes exclusive
 * @dir: as of sol_group_edit()
 * @want: how many, and near which nodes
 *
 * Return: 0, -ENOSPC if not enough are free, -EDQUOT if a rule's limit is in
 * the way, or as sol_group_edit().
 */
int sol_group_auto(struct sol_group *group, const struct config_item *dir,
		   const struct sol_want *want)
{
	struct stay before = stay_of(group);
	struct sol_tasks *tasks = sol_tasks_new(sol_group_tasks(group));
	int err;

	if (!tasks)
		return sol_no_memory(group->name);
	err = auto_once(group, want);

	/* Pages of ended tasks may wait in an idle CPU's batch. Any user's exec may ask. */
	if (err == -ENOSPC || err == -EDQUOT) {
		sol_reap_drain(!group->implicit);
		err = auto_once(group, want);
	}
	if (!err)
		recolored(group, dir, before, tasks);
	sol_tasks_free(tasks);
	return err;
}

/* ---- Growing ---- */

/*
 * Add a free bank set near the current task to @to. Nothing is flushed in a fault:
 * supply did, before it said that the group's colours are short.
 */
static int grow_sets(struct sol_colors *to)
{
	const struct sol_map *map = sol_map_in_use();
	struct sol_want want = {
		.n_sets = 1,
		.near = sol_member_near(current),
		.allowed = sol_member_nodes(current),
		.realtime = to->realtime,
		.llc = to->by_llc ? to->llc : NULL,
	};
	struct sol_colors *more = sol_colors_new(map);
	struct sol_err err;
	int ret;

	if (!more)
		return -ENOMEM;
	ret = sol_palette_assign(&sol_palette, &want, more, &err);
	if (!ret)
		bitmap_or(to->sets, to->sets, more->sets, map->n_bank_sets);
	sol_colors_free(more);
	return ret;
}

/* Add an LLC colour that nobody has to @to. */
static int grow_llc(struct sol_colors *to)
{
	const struct sol_map *map = sol_map_in_use();
	u32 i;

	for (i = 0; i < map->n_llc; i++)
		if (!sol_palette.llc[i].owners) {
			sol_bit_set(to->llc, i);
			return 0;
		}
	return -ENOSPC;
}

static int grow(struct sol_group *group)
{
	const struct sol_map *map = sol_map_in_use();
	struct sol_colors *to = sol_colors_new(map);
	int err;

	if (!to)
		return -ENOMEM;
	sol_colors_copy(map, to, &group->colors);
	err = sol_quota_check(group, group->n_sets + to->by_bank);
	if (!err)
		err = to->by_bank ? grow_sets(to) : grow_llc(to);
	else
		atomic64_inc(&group->quota->limited);
	if (!err)
		err = recolor(group, to);
	if (!err)
		sol_group_add(group, grown, 1);
	sol_colors_free(to);
	return err;
}

/* A group that found no free colour has to wait before it looks again. */
static int grow_or_back_off(struct sol_group *group)
{
	int err;

	if (time_before(jiffies, group->grow_after))
		return -ENOSPC;
	err = grow(group);
	group->grow_after = err ? jiffies + HZ / 10 : jiffies;
	return err;
}

/**
 * sol_group_grow() - CAMC: a task that ran out gets another free colour
 * @group: of the current task, which may hold mmap_lock and may sleep
 * @seen: cells that the caller found empty, ->n of its struct sol_cells
 *
 * Threads that run out together grow the group once.
 *
 * Return: 0 if there are more cells than @seen now; -ENOSPC if no colour is
 * free; another errno if the colours could not be had.
 */
int sol_group_grow(struct sol_group *group, u32 seen)
{
	struct sol_silence silence;
	struct sol_cells *cells;
	int err = -ENOENT;

	sol_silence_begin(&silence);
	mutex_lock(&sol_group_mutex);
	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	if (!cells)
		goto out;
	err = 0;
	if (cells->n <= seen)
		err = grow_or_back_off(group);
	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	if (!err && cells->n <= seen)
		err = -ENOSPC;	/* the new colour holds no page */
out:
	mutex_unlock(&sol_group_mutex);
	sol_silence_end(&silence);
	return err;
}

/* ---- Reading ---- */

/**
 * sol_group_capacity() - memory in a group's colours
 * @group: the group
 *
 * Anyone may ask, so that the sum is made of a copy, without the mutex that faults wait for.
 *
 * Return: bytes by the map, whether this machine has memory there or not, and also where it
 * came after the module was loaded and has no colour (frames/array.c); 0: the group does not
 * colour, or no memory.
 */
u64 sol_group_capacity(const struct sol_group *group)
{
	const struct sol_map *map = sol_map_in_use();	/* stays while the group is there */
	struct sol_colors *colors = sol_colors_new(map);
	u64 bytes = 0;

	if (!colors)
		return 0;
	mutex_lock(&sol_group_mutex);
	sol_colors_copy(map, colors, &group->colors);
	mutex_unlock(&sol_group_mutex);
	if (sol_colors_restrict(colors))
		bytes = sol_colors_bytes(map, colors);
	sol_colors_free(colors);
	return bytes;
}
