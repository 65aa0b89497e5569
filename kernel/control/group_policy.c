// SPDX-License-Identifier: GPL-2.0
/*
 * The files of a group's policy: mode, exhaust, text, ephemeral, reserve and
 * bandwidth.
 *
 * Locking: none of its own. A file shows the state of a moment.
 */
#include <linux/ctype.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "../command/rmdir.h"
#include "../command/status.h"
#include "../frames/prefill.h"
#include "../guard/guard.h"
#include "../migrate/evict.h"
#include "../palette/colors.h"
#include "../palette/life.h"
#include "group.h"

static const char *const mode_name[] = { "shareable", "exclusive" };

ssize_t sol_group_mode_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  mode_name[sol_to_group(item)->colors.exclusive]);
}

static int mode_edit(struct sol_colors *colors, const void *arg)
{
	int mode = sysfs_match_string(mode_name, arg);

	if (mode < 0)
		return sol_deny(-EINVAL,
				"mode: expected shareable or exclusive");
	colors->exclusive = mode;
	return 0;
}

ssize_t sol_group_mode_store(struct config_item *item, const char *page,
			     size_t count)
{
	int err = sol_command_may("mode", page, count);

	if (!err)
		err = sol_group_edit(sol_to_group(item), item, mode_edit, page);
	return sol_group_colored(sol_to_group(item), err, count);
}

/* ---- exhaust ---- */

const char *const sol_exhaust_name[SOL_N_EXHAUST] = {
	[SOL_FAIL] = "fail", [SOL_GROW] = "grow", [SOL_SPILL] = "spill",
};

int sol_control_exhaust(const char *page, size_t count, u8 *exhaust)
{
	int i = __sysfs_match_string(sol_exhaust_name, SOL_N_EXHAUST, page);

	if (i < 0)
		return sol_deny(-EINVAL,
				"exhaust: expected fail, grow or spill");
	*exhaust = i;
	return 0;
}

ssize_t sol_group_exhaust_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  sol_exhaust_name[sol_to_group(item)->exhaust]);
}

ssize_t sol_group_exhaust_store(struct config_item *item, const char *page,
				size_t count)
{
	struct sol_group *group = sol_to_group(item);
	int err = sol_command_may("exhaust", page, count);
	u8 exhaust;

	if (!err)
		err = sol_control_exhaust(page, count, &exhaust);
	if (!err)
		err = sol_group_check_living(group);
	/* It may come to share any bank set. */
	if (!err && exhaust != SOL_FAIL)
		err = sol_guard_recolor_begin(group);
	if (err)
		return sol_status_done(err, count);
	WRITE_ONCE(group->exhaust, exhaust);
	if (exhaust != SOL_FAIL)
		sol_guard_recolor_end(group);
	return sol_status_done(0, count);
}

/* ---- text, ephemeral ---- */

static const char *const text_name[] = { "private", "shared", "all" };

ssize_t sol_group_text_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  text_name[READ_ONCE(sol_to_group(item)->text)]);
}

ssize_t sol_group_text_store(struct config_item *item, const char *page,
			     size_t count)
{
	int err = sol_command_may("text", page, count);
	int how = sysfs_match_string(text_name, page);

	if (!err && how < 0)
		err = sol_deny(-EINVAL, "text: expected private, shared or all");
	if (!err)
		err = sol_group_check_living(sol_to_group(item));
	if (!err)
		WRITE_ONCE(sol_to_group(item)->text, how);
	return sol_status_done(err, count);
}

ssize_t sol_group_ephemeral_show(struct config_item *item, char *page)
{
	const struct sol_group *group = sol_to_group(item);

	if (READ_ONCE(group->dead))
		return sysfs_emit(page, "gone\n");
	return sysfs_emit(page, "%d\n", READ_ONCE(group->ephemeral));
}

ssize_t sol_group_ephemeral_store(struct config_item *item, const char *page,
				  size_t count)
{
	int err = sol_command_may("ephemeral", page, count);
	bool yes;

	if (!err && kstrtobool(page, &yes))
		err = sol_deny(-EINVAL, "ephemeral: expected 0 or 1");
	if (!err)
		err = sol_group_set_ephemeral(sol_to_group(item), yes);
	return sol_status_done(err, count);
}

/* ---- reserve ---- */

ssize_t sol_group_reserve_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%llu\n",
			  READ_ONCE(sol_to_group(item)->reserve) << PAGE_SHIFT);
}

/* Bytes as memparse() takes them, but refusing what overflows. */
static int bytes_parse(const char *page, u64 *bytes)
{
	static const char suffix[] = "KMGT";
	size_t n = strspn(page, "0123456789");
	unsigned int shift = 0;
	char number[21] = "";
	const char *at;

	/* A number that does not fit is not cut: it would be another one. */
	if (n >= sizeof(number))
		return -EINVAL;
	memcpy(number, page, n);
	at = page[n] ? strchr(suffix, toupper(page[n])) : NULL;
	if (at) {
		shift = 10 * (at - suffix + 1);
		n++;
	}
	if (kstrtou64(number, 10, bytes) || *bytes > U64_MAX >> shift ||
	    (page[n] && strcmp(page + n, "\n")))
		return -EINVAL;
	*bytes <<= shift;
	return 0;
}

static int reserve_parse(const char *page, u64 *frames)
{
	u64 bytes;

	if (bytes_parse(page, &bytes))
		return sol_deny(-EINVAL,
				"reserve: expected bytes, such as 64M");
	if (bytes & ~PAGE_MASK)
		return sol_deny(-EINVAL,
				"reserve: %llu is no multiple of a page, %lu bytes",
				bytes, PAGE_SIZE);
	*frames = bytes >> PAGE_SHIFT;
	return 0;
}

/* A size as people write it: in the largest unit that it is a multiple of. */
struct size {
	u64 n;
	const char *unit;
};

static struct size size_of_frames(u64 frames)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	u64 n = frames << (PAGE_SHIFT - 10);
	u32 i = 0;

	while (n && !(n & 1023) && i < ARRAY_SIZE(units) - 1) {
		n >>= 10;
		i++;
	}
	return (struct size){ n, units[i] };
}

ssize_t sol_group_colored(struct sol_group *group, int err, size_t count)
{
	u64 frames = err ? 0 : READ_ONCE(group->reserve), have = 0;
	struct size asked, can;

	if (frames)
		have = sol_store_reserved(group);
	if (have >= frames)
		return sol_status_done(err, count);
	asked = size_of_frames(frames);
	can = size_of_frames(have);
	sol_status_note("ok, but of the reserve of %llu %s only %llu %s are listed in these colours",
			asked.n, asked.unit, can.n, can.unit);
	return count;
}

/*
 * Frames that are free, or that supply's gentle means make free. If an exclusive group
 * lacks some, what others have in its colours is evicted, once. Return: frames, or an
 * errno and words.
 */
static s64 reserve_or_evict(struct sol_group *group, const struct config_item *dir,
			    u64 frames)
{
	const struct sol_job_how how = { .dir = dir };
	s64 have = sol_group_reserve(group, dir, frames);

	if (have < 0 || have >= (s64)frames || !READ_ONCE(group->colors.exclusive))
		return have;
	return sol_evict(group, &how) ?: sol_group_reserve(group, dir, frames);
}

static int reserve_store(struct sol_group *group, const struct config_item *dir,
			 const char *page)
{
	struct size asked, can;
	u64 frames;
	s64 have;
	int err = reserve_parse(page, &frames);

	if (err)
		return err;
	asked = size_of_frames(frames);
	have = sol_group_capacity(group) >> PAGE_SHIFT;
	can = size_of_frames(have);
	if (frames > (u64)have)
		return sol_deny(-ENOSPC,
				"reserve: %llu %s asked, the group's colours have %llu %s in all",
				asked.n, asked.unit, can.n, can.unit);
	err = sol_group_reserve_begin(group);
	if (err)
		return err;
	have = reserve_or_evict(group, dir, frames);
	sol_group_reserve_end(group);
	if (have < 0)
		return have;	/* who refused has said why */
	can = size_of_frames(have);
	if ((u64)have >= frames)
		return 0;
	if (sol_rmdir_waits(dir))
		return sol_deny(-ENOENT, "reserve: %s was removed meanwhile", group->name);
	return sol_deny(-ENOSPC,
			"reserve: %llu %s asked, only %llu %s are free in the group's colours",
			asked.n, asked.unit, can.n, can.unit);
}

ssize_t sol_group_reserve_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = sol_command_may("reserve", page, count);

	return sol_status_done(err ?: reserve_store(sol_to_group(item), item, page), count);
}

/* ---- bandwidth, see guard.c ---- */

ssize_t sol_group_bandwidth_show(struct config_item *item, char *page)
{
	return sol_bandwidth_show(sol_to_group(item), page);
}

ssize_t sol_group_bandwidth_store(struct config_item *item, const char *page,
				  size_t count)
{
	int err = sol_bandwidth_store(sol_to_group(item), page, count);

	return sol_status_done(err, count);
}
