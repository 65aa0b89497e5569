// SPDX-License-Identifier: GPL-2.0
/*
 * The files that set a group's colours: dram_bank, bank_set, llc_color, node and
 * auto. They share one way: copy the group's colours, change the copy by what was
 * written, hand it to sol_group_edit(), which takes it whole or not at all.
 *
 * Locking: sol_group_mutex while bitmaps are read. A file shows the state of a
 * moment.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../group/member.h"
#include "../guard/guard.h"
#include "../palette/colors.h"
#include "../palette/map.h"
#include "group.h"

/**
 * struct list_file - a file with a list of colours, and the meaning of its numbers
 * @name: of the file
 * @of: what a number is, in words
 * @n_at: where in struct sol_map it stands how many there are
 * @llc: the list is of LLC colours, else it is of bank sets
 * @owned: has @group number @i?
 * @apply: put numbers into the bitmap of @colors, which is empty
 */
struct list_file {
	const char *name;
	const char *of;
	size_t n_at;
	bool llc;
	bool (*owned)(const struct sol_group *group, u32 i);
	void (*apply)(const struct sol_map *map, const unsigned long *bits,
		      struct sol_colors *colors);
};

/* How many numbers a list of @file may have: those below this. */
static u32 list_n(const struct list_file *file)
{
	return *(const u32 *)((const char *)sol_map_in_use() + file->n_at);
}

/* ---- Lists of colours: reading ---- */

static ssize_t list_show(const unsigned long *bits, u32 n, char *page)
{
	size_t len = sol_list_print(bits, n, page, SOL_FILE_SIZE - 1);

	if (len >= SOL_FILE_SIZE - 1)
		return sol_deny(-EFBIG, "the list has %zu bytes, a file of configfs %u",
				len, SOL_FILE_SIZE);
	page[len] = '\n';
	return len + 1;
}

/* The list of @file. Under sol_group_mutex, so that the bitmaps don't change underway. */
static ssize_t derived_show(const struct list_file *file,
			    const struct sol_group *group, char *page)
{
	u32 n = list_n(file);
	unsigned long *bits = kvcalloc(SOL_LONGS(n), sizeof(long), GFP_KERNEL);
	ssize_t ret;
	u32 i;

	if (!bits)
		return sol_no_memory(file->name);
	mutex_lock(&sol_group_mutex);
	for (i = 0; i < n; i++)
		if (file->owned(group, i))
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

/* ---- Lists of colours: writing ---- */

/* A list that was written to one of the files. */
struct list_write {
	const struct list_file *file;
	const char *page;
	size_t count;
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
				w->file->name);
	err = sol_list_parse(w->page, len, list_n(w->file), bits, &why);
	if (err)
		return sol_deny(err, "%s: %s (%s of %s)", w->file->name,
				why.text, w->file->of, sol_map_in_use()->name);
	return 0;
}

static int list_edit(struct sol_colors *colors, const void *arg)
{
	const struct list_write *w = arg;
	const struct sol_map *map = sol_map_in_use();
	u32 n = list_n(w->file);
	unsigned long *bits = kvcalloc(SOL_LONGS(n), sizeof(long), GFP_KERNEL);
	bool llc = w->file->llc;
	int err = bits ? list_parse(w, bits) : sol_no_memory(w->file->name);

	if (!err) {
		if (llc)
			colors->by_llc = !bitmap_empty(bits, n);
		else
			colors->by_bank = !bitmap_empty(bits, n);
		bitmap_zero(llc ? colors->llc : colors->sets,
			    llc ? map->n_llc : map->n_bank_sets);
		w->file->apply(map, bits, colors);
	}
	kvfree(bits);
	return err;
}

static ssize_t list_store(struct config_item *item, const struct list_write *w)
{
	struct sol_group *group = sol_to_group(item);
	int err = sol_command_may(w->file->name, w->page, w->count) ?:
		  sol_guard_recolor_begin(group);

	if (!err) {
		err = sol_group_edit(group, item, list_edit, w);
		sol_guard_recolor_end(group);
	}
	return sol_group_colored(group, err, w->count);
}

#define LIST_FILE(_name, _of, _n, _llc, _owned, _apply)			\
static const struct list_file _name##_file = {				\
	#_name, _of, offsetof(struct sol_map, _n), _llc, _owned, _apply	\
};									\
									\
ssize_t sol_group_##_name##_show(struct config_item *item, char *page)	\
{									\
	return derived_show(&_name##_file, sol_to_group(item), page);	\
}									\
									\
ssize_t sol_group_##_name##_store(struct config_item *item,		\
				  const char *page, size_t count)	\
{									\
	struct list_write w = { &_name##_file, page, count };		\
									\
	return list_store(item, &w);					\
}

LIST_FILE(dram_bank, "bank colours", n_colors, false, owns_bank, apply_banks)
LIST_FILE(bank_set, "bank sets", n_bank_sets, false, owns_set, apply_sets)
LIST_FILE(llc_color, "LLC colours", n_llc, true, owns_llc, apply_llc)
LIST_FILE(node, "nodes", n_nodes, false, owns_node, apply_nodes)

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

static int auto_store(struct sol_group *group, const struct config_item *dir,
		      const char *page, size_t count)
{
	struct sol_want want = {
		.near = sol_member_near(current),
		.allowed = sol_member_nodes(current),
	};
	char *text = kmemdup_nul(page, count, GFP_KERNEL);
	int err = text ? auto_parse(text, &want) : sol_no_memory("auto");

	if (!err)
		err = sol_group_auto(group, dir, &want);
	kfree(text);
	return err;
}

ssize_t sol_group_auto_store(struct config_item *item, const char *page,
			     size_t count)
{
	struct sol_group *group = sol_to_group(item);
	int err = sol_command_may("auto", page, count) ?:
		  sol_guard_recolor_begin(group);

	if (!err) {
		err = auto_store(group, item, page, count);
		sol_guard_recolor_end(group);
	}
	return sol_group_colored(group, err, count);
}
