// SPDX-License-Identifier: GPL-2.0
/*
 * The files of what lies in a group's colours: occupancy, evict and recolor.
 *
 * Locking: none of its own. A file shows the state of a moment. Evicting and recolouring
 * last long: the group's directory can't be removed meanwhile, and other files work.
 */
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../migrate/evict.h"
#include "../migrate/recolor.h"
#include "../occupancy/occupancy.h"
#include "group.h"

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

/* ---- evict: 1 [rate=BYTES] ---- */

static int evict_parse(char *text, u64 *rate)
{
	char *word = strsep(&text, " \t");

	*rate = 0;
	if (strcmp(word, "1"))
		return sol_deny(-EINVAL,
				"evict: expected 1, then rate=BYTES a second if wanted");
	word = text ? skip_spaces(text) : NULL;
	if (!word || !*word)
		return 0;
	if (strncmp(word, "rate=", 5) || kstrtou64(word + 5, 10, rate) ||
	    !*rate)
		return sol_deny(-EINVAL,
				"evict: '%.40s' is not rate=BYTES, a number above 0",
				word);
	return 0;
}

static int evict_store(struct sol_group *group, const char *page, size_t count)
{
	char *text = kmemdup_nul(page, count, GFP_KERNEL);
	u64 rate;
	int err;

	if (!text)
		return -ENOMEM;
	err = evict_parse(strim(text), &rate);
	kfree(text);
	return err ?: sol_evict(group, rate);
}

ssize_t sol_group_evict_store(struct config_item *item, const char *page,
			      size_t count)
{
	int err = sol_command_may("evict", count);

	return sol_status_done(err ?: evict_store(sol_to_group(item), page,
						  count), count);
}

ssize_t sol_group_evict_show(struct config_item *item, char *page)
{
	return sol_evict_show(sol_to_group(item), page);
}

/* ---- recolor: a process id, or 0 for all of the group ---- */

static int recolor_store(struct sol_group *group, const char *page,
			 size_t count)
{
	struct task_struct *task;
	u64 pid;
	int err;

	err = sol_command_number("recolor", page, sol_command_trim(page, count),
				 INT_MAX, &pid);
	if (err || !pid)
		return err ?: sol_recolor(group, NULL);
	rcu_read_lock();
	task = pid_task(find_vpid(pid), PIDTYPE_TGID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	if (!task)
		return sol_deny(-ESRCH, "recolor: there is no process %llu",
				pid);
	err = sol_recolor(group, task);
	put_task_struct(task);
	return err;
}

ssize_t sol_group_recolor_store(struct config_item *item, const char *page,
				size_t count)
{
	int err = sol_command_may("recolor", count);

	return sol_status_done(err ?: recolor_store(sol_to_group(item), page,
						    count), count);
}

ssize_t sol_group_recolor_show(struct config_item *item, char *page)
{
	return sol_recolor_show(sol_to_group(item), page);
}
