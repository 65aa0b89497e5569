// SPDX-License-Identifier: GPL-2.0
/*
 * implicit: groups that have no directory, made by rules and by the papers' mmap()
 * calls, and their tasks.
 *
 * A binary attribute, since the list may be long. It is made twice, once for its length
 * and once to be shown. Groups and tasks that come in between may be missing; if some
 * go, there are empty lines at the end.
 *
 * Locking: sol_group_mutex, so that a group's colours don't change while they are
 * printed. Tasks are found under RCU.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../../core/text/text.h"
#include "../palette/map.h"
#include "control.h"

static void put_list(struct sol_text *text, bool any, const unsigned long *bits,
		     u32 n)
{
	size_t at = min(text->len, text->size);

	if (any)
		sol_text_put(text, "any");
	else
		text->len += sol_list_print(bits, n, text->buf + at,
					    text->size - at);
}

static void put_group(struct sol_text *text, struct sol_group *group)
{
	const struct sol_colors *colors = &group->colors;
	struct sol_group_stats s;

	sol_group_sum(group, &s);
	sol_text_put(text, "group %u ", (u32)group->id);
	put_list(text, !colors->by_bank, colors->sets,
		 sol_map_in_use()->n_bank_sets);
	sol_text_put(text, " ");
	put_list(text, !colors->by_llc, colors->llc, sol_map_in_use()->n_llc);
	sol_text_put(text, " %u %u %s\n",
		     (u32)sol_group_used(group),
		     (u32)s.page_tables, group->name);
}

static void put_groups(struct sol_text *text, unsigned long *implicit)
{
	struct sol_group *group;
	u32 id;

	mutex_lock(&sol_group_mutex);
	for (id = 1; id <= SOL_MAX_GROUPS; id++) {
		group = rcu_dereference_protected(sol_groups[id],
				lockdep_is_held(&sol_group_mutex));
		if (!group || !group->implicit || group->dead)
			continue;
		put_group(text, group);
		sol_bit_set(implicit, id);
	}
	mutex_unlock(&sol_group_mutex);
}

static void put_tasks(struct sol_text *text, const unsigned long *implicit)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task) {
		u16 id = group_id_of(task);
		pid_t tid;

		if (!id || !sol_bit(implicit, id))
			continue;
		tid = task_pid_vnr(task);
		if (tid)	/* 0: of another pid namespace, or gone */
			sol_text_put(text, "task %u %u\n", (u32)tid, (u32)id);
	}
	rcu_read_unlock();
}

static ssize_t root_implicit_read(struct config_item *item, void *buf,
				  size_t size)
{
	struct sol_text text = { .buf = buf, .size = buf ? size : 0 };
	unsigned long *implicit = kvcalloc(SOL_LONGS(SOL_MAX_GROUPS + 1),
					   sizeof(long), GFP_KERNEL);

	if (!implicit)
		return sol_no_memory("implicit");
	put_groups(&text, implicit);
	put_tasks(&text, implicit);
	kvfree(implicit);
	if (!buf)
		return text.len + 1;	/* and the NUL of a full buffer */
	/* It may have grown: no half of a line. */
	text.len = min(text.len, size - 1);
	while (text.len && text.buf[text.len - 1] != '\n')
		text.len--;
	memset(buf + text.len, '\n', size - text.len);
	return size;
}

SOL_BIN_ATTR_SECRET(root_, implicit);

struct configfs_bin_attribute *sol_root_bin_attrs[] = {
	&root_attr_implicit,
	NULL,
};
