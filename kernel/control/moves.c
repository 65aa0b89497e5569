// SPDX-License-Identifier: GPL-2.0
/*
 * The root's evict and recolor: what a group's files of these names do, for a group
 * that has no directory, too. A group is named by its number.
 *
 *   evict    ID [rate=BYTES] [isolated]
 *   recolor  ID [pid=PID] [rate=BYTES] [isolated]
 *
 * Locking: a reference on the group, so that it and the address map stay. The job ends
 * as soon as it is done, by itself or by a signal.
 */
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../migrate/evict.h"
#include "../migrate/recolor.h"
#include "control.h"
#include "moves.h"

/* ---- Words ---- */

static int parse_pid(const char *what, const char *text, struct moves_words *w)
{
	if (kstrtoint(text, 10, &w->pid) || w->pid < 1)
		return sol_deny(-EINVAL, "%s: '%.40s' is no process id", what,
				text);
	return 0;
}

static int parse_word(const char *what, const char *word, struct moves_words *w)
{
	if (!strcmp(word, "isolated")) {
		w->how.isolated = true;
		return 0;
	}
	if (w->pid_ok && !strncmp(word, "pid=", 4))
		return parse_pid(what, word + 4, w);
	if (!strncmp(word, "rate=", 5) && !kstrtou64(word + 5, 10, &w->how.rate) &&
	    w->how.rate)
		return 0;
	return sol_deny(-EINVAL,
			"%s: '%.40s' is neither %srate=BYTES, a number above 0, nor isolated",
			what, word, w->pid_ok ? "pid=PID, " : "");
}

int sol_moves_parse(const char *what, const char *page, size_t count,
		    struct moves_words *w)
{
	char *text = kmemdup_nul(page, count, GFP_KERNEL), *rest, *word;
	int err = 0;

	if (!text)
		return sol_no_memory(what);
	rest = strim(text);
	word = strsep(&rest, " \t");
	if (kstrtou32(word, 10, &w->first))
		err = sol_deny(-EINVAL, "%s: expected %s, then %srate=BYTES or isolated if wanted",
			       what, w->first_is, w->pid_ok ? "pid=PID, " : "");
	while (!err && (word = strsep(&rest, " \t")))
		if (*word)
			err = parse_word(what, word, w);
	kfree(text);
	return err;
}

int sol_moves_recolor(struct sol_group *group, pid_t pid,
		      const struct sol_job_how *how)
{
	struct task_struct *task;
	int err;

	if (!pid)
		return sol_recolor(group, NULL, how);
	rcu_read_lock();
	task = pid_task(find_vpid(pid), PIDTYPE_TGID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	if (!task)
		return sol_deny(-ESRCH, "recolor: there is no process %d", pid);
	err = sol_recolor(group, task, how);
	put_task_struct(task);
	return err;
}

/* ---- The root's files ---- */

/* The living group of number @id, kept; or NULL. */
static struct sol_group *find_group(u32 id)
{
	struct sol_group *group = NULL;

	mutex_lock(&sol_group_mutex);
	if (id <= SOL_MAX_GROUPS)
		group = rcu_dereference_protected(sol_groups[id],
				lockdep_is_held(&sol_group_mutex));
	if (group && (group->dead || !sol_group_keep(group)))
		group = NULL;
	mutex_unlock(&sol_group_mutex);
	return group;
}

static int run(const char *what, const char *page, size_t count, bool recolor)
{
	struct moves_words w = { .first_is = "a group's number", .pid_ok = recolor };
	struct sol_group *group;
	int err = sol_moves_parse(what, page, count, &w);

	if (err)
		return err;
	group = find_group(w.first);
	if (!group)
		return sol_deny(-ENOENT, "%s: there is no group of number %u",
				what, w.first);
	err = recolor ? sol_moves_recolor(group, w.pid, &w.how) :
			sol_evict(group, &w.how);
	sol_group_keep_no_more(group);
	return err;
}

ssize_t sol_root_evict_store(struct config_item *item, const char *page,
			     size_t count)
{
	int err = sol_command_may("evict", page, count);

	return sol_status_done(err ?: run("evict", page, count, false), count);
}

ssize_t sol_root_evict_show(struct config_item *item, char *page)
{
	return sol_evict_show(NULL, page);
}

ssize_t sol_root_recolor_store(struct config_item *item, const char *page,
			       size_t count)
{
	int err = sol_command_may("recolor", page, count);

	return sol_status_done(err ?: run("recolor", page, count, true), count);
}

ssize_t sol_root_recolor_show(struct config_item *item, char *page)
{
	return sol_recolor_show(NULL, page);
}
