// SPDX-License-Identifier: GPL-2.0
/*
 * groups/NAME/: the files of a group.
 *
 * The files that set colours share one way: copy the group's colours, change
 * the copy by what was written, hand it to sol_group_edit(), which takes it
 * whole or not at all.
 *
 * Locking: see control.c. What a file shows is a moment's state.
 */
#include <linux/bitmap.h>
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include "control.h"
#include "../guard/guard.h"
#include "../rule/cgroup.h"
#include "../group/member.h"
#include "../command/status.h"
#include "../frames/prefill.h"
#include "../palette/colors.h"
#include "../palette/life.h"
#include "../palette/map.h"

struct group_dir {
	struct config_item item;
	struct sol_group *group;
};

static struct sol_group *to_group(struct config_item *item)
{
	return container_of(item, struct group_dir, item)->group;
}

/* ---- Lists of colours: reading ---- */

static ssize_t list_show(const unsigned long *bits, u32 n, char *page)
{
	size_t len = sol_list_print(bits, n, page, PAGE_SIZE - 1);

	if (len >= PAGE_SIZE - 1)
		return sol_deny(-EFBIG, "the list has %zu bytes, a file of configfs 4096",
				len);
	page[len] = '\n';
	return len + 1;
}

/*
 * Bit i of a list is set if @owned says so; @n bits. Under sol_group_mutex,
 * so that the bitmaps don't change underway.
 */
static ssize_t derived_show(const struct sol_group *group, u32 n, char *page,
			    bool (*owned)(const struct sol_group *group, u32 i))
{
	unsigned long *bits = kvcalloc(SOL_LONGS(n), sizeof(long), GFP_KERNEL);
	ssize_t ret;
	u32 i;

	if (!bits)
		return -ENOMEM;
	mutex_lock(&sol_group_mutex);
	for (i = 0; i < n; i++)
		if (owned(group, i))
			sol_bit_set(bits, i);
	mutex_unlock(&sol_group_mutex);
	ret = list_show(bits, n, page);
	kvfree(bits);
	return ret;
}

static bool owns_bank(const struct sol_group *group, u32 bc)
{
	return group->colors.by_bank &&
	       sol_bit(group->colors.sets,
		       sol_map_color_set(sol_map_in_use(), bc));
}

static bool owns_set(const struct sol_group *group, u32 set)
{
	return group->colors.by_bank && sol_bit(group->colors.sets, set);
}

static bool owns_llc(const struct sol_group *group, u32 llc)
{
	return group->colors.by_llc && sol_bit(group->colors.llc, llc);
}

static bool owns_node(const struct sol_group *group, u32 node)
{
	u32 per_node = 1u << sol_map_in_use()->set_bits;
	u32 first = node * per_node;

	return group->colors.by_bank &&
	       find_next_zero_bit(group->colors.sets, first + per_node,
				  first) == first + per_node;
}

static ssize_t group_dram_bank_show(struct config_item *item, char *page)
{
	return derived_show(to_group(item), sol_map_in_use()->n_colors, page,
			    owns_bank);
}

static ssize_t group_bank_set_show(struct config_item *item, char *page)
{
	return derived_show(to_group(item), sol_map_in_use()->n_bank_sets, page,
			    owns_set);
}

static ssize_t group_llc_color_show(struct config_item *item, char *page)
{
	return derived_show(to_group(item), sol_map_in_use()->n_llc, page,
			    owns_llc);
}

static ssize_t group_node_show(struct config_item *item, char *page)
{
	return derived_show(to_group(item), sol_map_in_use()->n_nodes, page,
			    owns_node);
}

/* ---- Lists of colours: writing ---- */

/* A list written to one of the files, and what its numbers stand for. */
struct list_write {
	const char *file;
	const char *of;		/* what a number is */
	u32 n;
	const char *page;
	size_t count;
	/* Into the bitmaps of @colors, which are empty. */
	void (*apply)(const struct sol_map *map, const unsigned long *bits,
		      struct sol_colors *colors);
};

static void apply_banks(const struct sol_map *map, const unsigned long *bits,
			struct sol_colors *colors)
{
	u32 bc;

	for_each_set_bit(bc, bits, map->n_colors)
		sol_bit_set(colors->sets, sol_map_color_set(map, bc));
}

static void apply_sets(const struct sol_map *map, const unsigned long *bits,
		       struct sol_colors *colors)
{
	bitmap_copy(colors->sets, bits, map->n_bank_sets);
}

static void apply_nodes(const struct sol_map *map, const unsigned long *bits,
			struct sol_colors *colors)
{
	u32 node;

	for_each_set_bit(node, bits, map->n_nodes)
		bitmap_set(colors->sets, node << map->set_bits,
			   1u << map->set_bits);
}

static void apply_llc(const struct sol_map *map, const unsigned long *bits,
		      struct sol_colors *colors)
{
	bitmap_copy(colors->llc, bits, map->n_llc);
}

static int list_parse(const struct list_write *w, unsigned long *bits)
{
	size_t len = sol_command_trim(w->page, w->count);
	struct sol_err why;
	int err;

	if (len && !*skip_spaces(w->page))
		return sol_deny(-EINVAL, "%s: expected a list such as 0-3,8, or nothing",
				w->file);
	err = sol_list_parse(w->page, len, w->n, bits, &why);
	if (err)
		return sol_deny(err, "%s: %s (%s of %s)", w->file, why.text,
				w->of, sol_map_in_use()->name);
	return 0;
}

static int list_edit(struct sol_colors *colors, const void *arg)
{
	const struct list_write *w = arg;
	const struct sol_map *map = sol_map_in_use();
	unsigned long *bits = kvcalloc(SOL_LONGS(w->n), sizeof(long),
				       GFP_KERNEL);
	bool llc = w->apply == apply_llc;
	int err = -ENOMEM;

	if (bits)
		err = list_parse(w, bits);
	if (!err) {
		if (llc)
			colors->by_llc = !bitmap_empty(bits, w->n);
		else
			colors->by_bank = !bitmap_empty(bits, w->n);
		bitmap_zero(llc ? colors->llc : colors->sets,
			    llc ? map->n_llc : map->n_bank_sets);
		w->apply(map, bits, colors);
	}
	kvfree(bits);
	return err;
}

static ssize_t list_store(struct config_item *item, const struct list_write *w)
{
	int err = sol_command_may(w->file, w->count);

	if (!err)
		err = sol_guard_may_recolor(to_group(item));
	if (!err)
		err = sol_group_edit(to_group(item), list_edit, w);
	return sol_status_done(err, w->count);
}

static ssize_t group_dram_bank_store(struct config_item *item, const char *page,
				     size_t count)
{
	struct list_write w = {
		"dram_bank", "bank colours", sol_map_in_use()->n_colors,
		page, count, apply_banks
	};

	return list_store(item, &w);
}

static ssize_t group_bank_set_store(struct config_item *item, const char *page,
				    size_t count)
{
	struct list_write w = {
		"bank_set", "bank sets", sol_map_in_use()->n_bank_sets,
		page, count, apply_sets
	};

	return list_store(item, &w);
}

static ssize_t group_llc_color_store(struct config_item *item, const char *page,
				     size_t count)
{
	struct list_write w = {
		"llc_color", "LLC colours", sol_map_in_use()->n_llc,
		page, count, apply_llc
	};

	return list_store(item, &w);
}

static ssize_t group_node_store(struct config_item *item, const char *page,
				size_t count)
{
	struct list_write w = {
		"node", "nodes", sol_map_in_use()->n_nodes,
		page, count, apply_nodes
	};

	return list_store(item, &w);
}

/* ---- auto: N [node=LIST] [llc=M] [realtime] ---- */

static int auto_nodes(const char *text, struct sol_want *want)
{
	unsigned long bits[SOL_LONGS(64)] = { 0 };
	struct sol_err why;
	int err;

	err = sol_list_parse(text, strlen(text), sol_map_in_use()->n_nodes, bits,
			     &why);
	if (err)
		return sol_deny(err, "auto: node: %s", why.text);
	if (bitmap_empty(bits, 64))
		return sol_deny(-EINVAL, "auto: node= needs a list such as 0,2");
	want->near = bits[0];
	want->allowed = bits[0];
	want->strict = true;
	return 0;
}

static int auto_word(char *word, struct sol_want *want)
{
	if (!strcmp(word, "realtime")) {
		want->realtime = true;
		return 0;
	}
	if (!strncmp(word, "node=", 5))
		return auto_nodes(word + 5, want);
	if (!strncmp(word, "llc=", 4) && !kstrtou32(word + 4, 10, &want->n_llc))
		return 0;
	return sol_deny(-EINVAL,
			"auto: '%s' is none of node=LIST, llc=M, realtime",
			word);
}

static int auto_parse(char *text, struct sol_want *want)
{
	char *word;
	int err;

	text = strim(text);
	word = strsep(&text, " \t");
	if (kstrtou32(word, 10, &want->n_sets) || !want->n_sets)
		return sol_deny(-EINVAL,
				"auto: expected how many bank sets, then node=LIST, llc=M or realtime if wanted");
	while ((word = strsep(&text, " \t"))) {
		err = *word ? auto_word(word, want) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int auto_store(struct sol_group *group, const char *page, size_t count)
{
	struct sol_want want = {
		.near = sol_member_near(current),
		.allowed = sol_member_nodes(current),
	};
	char *text = kmemdup_nul(page, count, GFP_KERNEL);
	int err = -ENOMEM;

	if (text)
		err = auto_parse(text, &want);
	if (!err)
		err = sol_group_auto(group, &want);
	kfree(text);
	return err;
}

static ssize_t group_auto_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = sol_command_may("auto", count) ?:
		  sol_guard_may_recolor(to_group(item));

	return sol_status_done(err ?: auto_store(to_group(item), page, count),
			       count);
}

/* ---- Policy ---- */

static const char *const mode_name[] = { "shareable", "exclusive" };

static ssize_t group_mode_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  mode_name[to_group(item)->colors.exclusive]);
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

static ssize_t group_mode_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = sol_command_may("mode", count);

	if (!err)
		err = sol_group_edit(to_group(item), mode_edit, page);
	return sol_status_done(err, count);
}

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

static ssize_t group_exhaust_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  sol_exhaust_name[to_group(item)->exhaust]);
}

static ssize_t group_exhaust_store(struct config_item *item, const char *page,
				   size_t count)
{
	int err = sol_command_may("exhaust", count);
	u8 exhaust;

	if (!err)
		err = sol_control_exhaust(page, count, &exhaust);
	if (!err && exhaust == SOL_GROW)
		err = sol_guard_may_recolor(to_group(item));
	if (!err)
		WRITE_ONCE(to_group(item)->exhaust, exhaust);
	return sol_status_done(err, count);
}

static const char *const text_name[] = { "private", "shared", "all" };

static ssize_t group_text_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  text_name[READ_ONCE(to_group(item)->text)]);
}

static ssize_t group_text_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = sol_command_may("text", count), how;

	if (!err) {
		how = sysfs_match_string(text_name, page);
		if (how < 0)
			err = sol_deny(-EINVAL,
				       "text: expected private, shared or all");
		else
			WRITE_ONCE(to_group(item)->text, how);
	}
	return sol_status_done(err, count);
}

static ssize_t group_ephemeral_show(struct config_item *item, char *page)
{
	const struct sol_group *group = to_group(item);

	if (READ_ONCE(group->dead))
		return sysfs_emit(page, "gone\n");
	return sysfs_emit(page, "%d\n", READ_ONCE(group->ephemeral));
}

static ssize_t group_ephemeral_store(struct config_item *item,
				     const char *page, size_t count)
{
	int err = sol_command_may("ephemeral", count);
	bool yes;

	if (!err && kstrtobool(page, &yes))
		err = sol_deny(-EINVAL, "ephemeral: expected 0 or 1");
	if (!err)
		err = sol_group_set_ephemeral(to_group(item), yes);
	return sol_status_done(err, count);
}

static ssize_t group_reserve_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%llu\n",
			  READ_ONCE(to_group(item)->reserve) << SOL_FRAME_SHIFT);
}

/* Bytes as memparse() takes them, but refusing what overflows. */
static int bytes_parse(const char *page, u64 *bytes)
{
	static const char suffix[] = "KMGT";
	size_t n = strspn(page, "0123456789");
	unsigned int shift = 0;
	char number[21] = "";
	const char *at;

	memcpy(number, page, min(n, sizeof(number) - 1));
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
	if (bytes & (BIT(SOL_FRAME_SHIFT) - 1))
		return sol_deny(-EINVAL, "reserve: %llu is no multiple of 4096",
				bytes);
	*frames = bytes >> SOL_FRAME_SHIFT;
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
	u64 n = frames << (SOL_FRAME_SHIFT - 10);
	u32 i = 0;

	while (n && !(n & 1023) && i < ARRAY_SIZE(units) - 1) {
		n >>= 10;
		i++;
	}
	return (struct size){ n, units[i] };
}

static int reserve_store(struct sol_group *group, const char *page)
{
	struct size asked, can;
	u64 frames, have;
	int err = reserve_parse(page, &frames);

	if (err)
		return err;
	asked = size_of_frames(frames);
	have = sol_group_capacity(group) >> SOL_FRAME_SHIFT;
	can = size_of_frames(have);
	if (frames > have)
		return sol_deny(-ENOSPC,
				"reserve: %llu %s asked, the group's colours have %llu %s in all",
				asked.n, asked.unit, can.n, can.unit);
	have = sol_group_reserve(group, frames);
	can = size_of_frames(have);
	if (have >= frames)
		return 0;
	return sol_deny(-ENOSPC,
			"reserve: %llu %s asked, only %llu %s are free in the group's colours",
			asked.n, asked.unit, can.n, can.unit);
}

static ssize_t group_reserve_store(struct config_item *item, const char *page,
				   size_t count)
{
	int err = sol_command_may("reserve", count);

	return sol_status_done(err ?: reserve_store(to_group(item), page),
			       count);
}

/* ---- Bandwidth, see guard.c ---- */

static ssize_t group_bandwidth_show(struct config_item *item, char *page)
{
	return sol_bandwidth_show(to_group(item), page);
}

static ssize_t group_bandwidth_store(struct config_item *item, const char *page,
				     size_t count)
{
	int err = sol_bandwidth_store(to_group(item), page, count);

	return sol_status_done(err, count);
}

/* ---- Cgroup ---- */

static ssize_t group_cgroup_show(struct config_item *item, char *page)
{
	return sol_cgroup_show(to_group(item), page);
}

static ssize_t group_cgroup_store(struct config_item *item, const char *page,
				  size_t count)
{
	int err = sol_command_may("cgroup", count);
	char *path = NULL;

	if (!err) {
		path = kmemdup_nul(page, sol_command_trim(page, count),
				   GFP_KERNEL);
		err = path ? sol_cgroup_bind(to_group(item), path) : -ENOMEM;
	}
	kfree(path);
	return sol_status_done(err, count);
}

/* ---- Tasks ---- */

static ssize_t group_id_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", to_group(item)->id);
}

static ssize_t group_tasks_show(struct config_item *item, char *page)
{
	size_t need = sol_member_list(to_group(item), page, PAGE_SIZE);

	if (need > PAGE_SIZE)
		return sol_deny(-EFBIG,
				"tasks: %zu bytes, a file of configfs has 4096; read members",
				need);
	return need;
}

/*
 * configfs asks twice: with no buffer for the length, then to fill it; and it
 * shows all of that length. What joined in between may be missing, as in any
 * list of living tasks; where some left, empty lines stand at the end.
 */
static ssize_t group_members_read(struct config_item *item, void *buf,
				  size_t size)
{
	if (!buf)
		return sol_member_list(to_group(item), NULL, 0);
	memset(buf, '\n', size);
	sol_member_list(to_group(item), buf, size);
	return size;
}

/* The thread or process with id @nr in the writer's namespace; 0: the writer. */
static struct task_struct *find_task(pid_t nr, enum pid_type type)
{
	struct task_struct *task = current;

	rcu_read_lock();
	if (nr)
		task = pid_task(find_vpid(nr), type);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	return task;
}

static int join_one(struct sol_group *group, pid_t nr, enum pid_type type)
{
	bool process = type == PIDTYPE_TGID;
	struct task_struct *task = find_task(nr, type);
	int err;

	if (!task)
		return sol_deny(-ESRCH, "%s: there is no %s %d",
				process ? "procs" : "tasks",
				process ? "process" : "thread", nr);
	err = process ? sol_member_join_process(group, task) :
			sol_member_join(group, task);
	put_task_struct(task);
	return err;
}

/* All of @text are ids; @group NULL: only check that. Words if not. */
static int join_each(struct sol_group *group, const char *text, size_t count,
		     enum pid_type type)
{
	char *copy = kmemdup_nul(text, count, GFP_KERNEL), *rest = copy, *word;
	int err = copy ? 0 : -ENOMEM, nr, n = 0;

	while (!err && (word = strsep(&rest, " \t\n"))) {
		if (!*word)
			continue;
		n++;
		if (kstrtoint(word, 10, &nr) || nr < 0 || !isdigit(*word))
			err = sol_deny(-EINVAL,
				       "%s: '%.20s' is no id; expected one a line, 0 for yourself",
				       type == PIDTYPE_TGID ? "procs" : "tasks",
				       word);
		else if (group)
			err = join_one(group, nr, type);
	}
	if (!err && !n)
		err = sol_deny(-EINVAL, "expected ids, one a line");
	kfree(copy);
	return err;
}

static ssize_t join_store(struct config_item *item, const char *page,
			  size_t count, enum pid_type type)
{
	int err = sol_command_may(type == PIDTYPE_TGID ? "procs" : "tasks",
				  count);

	if (!err)
		err = join_each(NULL, page, count, type);
	if (!err)
		err = join_each(to_group(item), page, count, type);
	return sol_status_done(err, count);
}

static ssize_t group_tasks_store(struct config_item *item, const char *page,
				 size_t count)
{
	return join_store(item, page, count, PIDTYPE_PID);
}

static ssize_t group_procs_store(struct config_item *item, const char *page,
				 size_t count)
{
	return join_store(item, page, count, PIDTYPE_TGID);
}

static ssize_t group_stats_show(struct config_item *item, char *page)
{
	struct sol_group *group = to_group(item);
	struct sol_group_stats s;

	sol_group_sum(group, &s);
	return sysfs_emit(page,
		"tasks %d\npages %llu\nspilled %llu\npage_tables %llu\nhits %llu\nrefills %llu\nexhausted %llu\ncontradicted %llu\nzeroed %llu\nmoved %llu\ngrown %llu\nfreed %llu\nlarge %llu\nhuge_ok %u\ncapacity %llu\nlisted %llu\ncgroup_refused %llu\nlooked %llu\ncgroup_present %d\n",
		atomic_read(&group->refs) - 1,
		sol_group_used(group), s.spilled,
		s.page_tables, s.hits, s.refills, s.exhausted, s.contradicted,
		s.zeroed, s.moved, s.grown, s.freed, s.large, group->huge_ok,
		sol_group_capacity(group), sol_store_listed(group),
		sol_cgroup_refused(group), s.looked,
		sol_cgroup_present(group));
}

static ssize_t times_print(char *page, ssize_t n, const char *what,
			   const u32 *times)
{
	int i;

	for (i = 0; i < SOL_TIMES - 1; i++)
		n += sysfs_emit_at(page, n, "%s_lt_%lu %u\n", what,
				   1ul << (SOL_TIME_MIN + i), times[i]);
	return n + sysfs_emit_at(page, n, "%s_more %u\n", what, times[i]);
}

static ssize_t group_times_show(struct config_item *item, char *page)
{
	struct sol_group_stats s;

	sol_group_sum(to_group(item), &s);
	return times_print(page, times_print(page, 0, "fault", s.fault),
			   "refill", s.refill);
}

CONFIGFS_ATTR_RO(group_, id);
SOL_ATTR_SECRET(group_, dram_bank);
SOL_ATTR_SECRET(group_, bank_set);
SOL_ATTR_SECRET(group_, llc_color);
SOL_ATTR_SECRET(group_, node);
CONFIGFS_ATTR_WO(group_, procs);
/* By hand: to the preprocessor `auto` is a word of its own. */
static struct configfs_attribute group_attr_auto = {
	.ca_name = "auto",
	.ca_mode = 0200,
	.ca_owner = THIS_MODULE,
	.store = group_auto_store,
};

CONFIGFS_ATTR(group_, mode);
CONFIGFS_ATTR(group_, exhaust);
CONFIGFS_ATTR(group_, text);
CONFIGFS_ATTR(group_, ephemeral);
CONFIGFS_ATTR(group_, reserve);
CONFIGFS_ATTR(group_, bandwidth);
SOL_ATTR_SECRET(group_, cgroup);
SOL_ATTR_SECRET(group_, tasks);
CONFIGFS_ATTR_RO(group_, stats);
CONFIGFS_ATTR_RO(group_, times);
SOL_BIN_ATTR_SECRET(group_, members);

static struct configfs_attribute *group_attrs[] = {
	&group_attr_id,
	&group_attr_dram_bank,
	&group_attr_bank_set,
	&group_attr_llc_color,
	&group_attr_node,
	&group_attr_auto,
	&group_attr_mode,
	&group_attr_exhaust,
	&group_attr_text,
	&group_attr_ephemeral,
	&group_attr_reserve,
	&group_attr_bandwidth,
	&group_attr_cgroup,
	&group_attr_tasks,
	&group_attr_procs,
	&group_attr_stats,
	&group_attr_times,
	NULL,
};

static struct configfs_bin_attribute *group_bin_attrs[] = {
	&group_attr_members,
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
	int err = sol_command_may(name, 0);

	if (err)
		return ERR_PTR(err);
	dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	if (!dir)
		return ERR_PTR(-ENOMEM);
	group = sol_group_new(name, false);
	if (IS_ERR(group)) {
		kfree(dir);
		return ERR_CAST(group);
	}
	dir->group = group;
	config_item_init_type_name(&dir->item, name, &group_type);
	sol_status_ok();
	return &dir->item;
}

/* What others know of a group that goes. */
static void forget(struct sol_group *group)
{
	sol_guard_disown(group);
	sol_cgroup_unbind(group);
}

static void groups_drop_item(struct config_group *parent,
			     struct config_item *item)
{
	forget(to_group(item));
	sol_group_remove(to_group(item));
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
