// SPDX-License-Identifier: GPL-2.0
/*
 * The files of a group's tasks (tasks, procs, members, cgroup, id) and of their pages
 * (stats, times).
 *
 * Locking: none of its own. A file shows the state of a moment.
 */
#include <linux/ctype.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../frames/prefill.h"
#include "../group/member.h"
#include "../group/tasks.h"
#include "../palette/colors.h"
#include "../rule/cgroup.h"
#include "group.h"

/* ---- cgroup ---- */

ssize_t sol_group_cgroup_show(struct config_item *item, char *page)
{
	return sol_cgroup_show(sol_to_group(item), page);
}

ssize_t sol_group_cgroup_store(struct config_item *item, const char *page,
			       size_t count)
{
	int err = sol_command_may("cgroup", page, count);
	char *paths = NULL;

	if (!err) {
		paths = kmemdup_nul(page, sol_command_trim(page, count),
				    GFP_KERNEL);
		err = paths ? sol_cgroup_bind(sol_to_group(item), paths) :
			      sol_no_memory("cgroup");
	}
	kfree(paths);
	return sol_status_done(err, count);
}

/* ---- tasks, procs, members ---- */

ssize_t sol_group_id_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", sol_to_group(item)->id);
}

ssize_t sol_group_tasks_show(struct config_item *item, char *page)
{
	size_t need = sol_member_list(sol_to_group(item), page, SOL_FILE_SIZE);

	if (need > SOL_FILE_SIZE)
		return sol_deny(-EFBIG,
				"tasks: %zu bytes, a file of configfs has %u; read members",
				need, SOL_FILE_SIZE);
	return need;
}

/*
 * configfs asks twice: without a buffer for the length, then to fill one, of which it
 * shows all. Tasks that joined in between may be missing, as in any list of living
 * tasks. If some left, there are empty lines at the end.
 */
ssize_t sol_group_members_read(struct config_item *item, void *buf, size_t size)
{
	if (!buf)
		return sol_member_list(sol_to_group(item), NULL, 0);
	memset(buf, '\n', size);
	sol_member_list(sol_to_group(item), buf, size);
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

/**
 * struct left - exclusive groups that tasks left by one command
 * @n: tasks
 * @task: the last of them
 * @group: the group that it left
 */
struct left {
	u32 n;
	pid_t task;
	char group[SOL_GROUP_NAME];
};

/* @task was in the group of @before, and is in @group now. */
static void note_left(struct left *left, struct task_struct *task, u16 before,
		      const struct sol_group *group)
{
	if (before == group->id)
		return;
	sol_with_group(g, before) {
		if (!READ_ONCE(g->colors.exclusive))
			continue;
		left->n++;
		left->task = task_pid_vnr(task);
		strscpy(left->group, g->name, sizeof(left->group));
	}
}

/**
 * struct joining - the tasks of one command, to be checked before the first joins
 * @group: that they join
 * @type: PIDTYPE_TGID: processes, with all their threads
 * @tasks: the tasks
 * @left: groups that they left
 */
struct joining {
	struct sol_group *group;
	enum pid_type type;
	struct sol_tasks *tasks;
	struct left left;
};

static bool of_processes(const struct joining *j)
{
	return j->type == PIDTYPE_TGID;
}

static int add_task(struct joining *j, const char *word)
{
	const char *file = of_processes(j) ? "procs" : "tasks";
	struct task_struct *task;
	int nr;

	if (kstrtoint(word, 10, &nr) || nr < 0 || !isdigit(*word))
		return sol_deny(-EINVAL,
				"%s: '%.20s' is no id; expected one a line, 0 for yourself",
				file, word);
	task = find_task(nr, j->type);
	if (!task)
		return sol_deny(-ESRCH, "%s: there is no %s %d", file,
				of_processes(j) ? "process" : "thread", nr);
	j->tasks->task[j->tasks->n++] = task;
	return 0;
}

/* Find the tasks of all ids in @text, which is cut into words. Words if not. */
static int find_each(struct joining *j, char *text)
{
	char *word;
	int err = 0;

	while (!err && (word = strsep(&text, " \t\n")))
		if (*word)
			err = add_task(j, word);
	if (!err && !j->tasks->n)
		err = sol_deny(-EINVAL, "expected ids, one a line");
	return err;
}

static int check_each(struct joining *j)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < j->tasks->n; i++)
		err = of_processes(j) ?
			      sol_member_may_join_process(j->group, j->tasks->task[i]) :
			      sol_member_may_join(j->group, j->tasks->task[i]);
	return err;
}

static int join_one(struct joining *j, struct task_struct *task)
{
	u16 before = group_id_of(task);
	int err = of_processes(j) ? sol_member_join_process(j->group, task) :
				    sol_member_join(j->group, task);

	if (!err)
		note_left(&j->left, task, before, j->group);
	return err;
}

/* One may have changed since it was checked. */
static int join_each(struct joining *j)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < j->tasks->n; i++)
		err = join_one(j, j->tasks->task[i]);
	if (err && i > 1)
		sol_deny(err, "%s: %u of %u joined; then %d was not allowed to any more, or ended",
			 j->group->name, i - 1, j->tasks->n,
			 task_pid_vnr(j->tasks->task[i - 1]));
	return err;
}

static int join(struct joining *j, const char *page, size_t count)
{
	char *text = kmemdup_nul(page, count, GFP_KERNEL);
	int err;

	/* An id has a digit and a separator at least. */
	j->tasks = text ? sol_tasks_new((count + 1) / 2) : NULL;
	err = j->tasks ? find_each(j, text) :
			 sol_no_memory(of_processes(j) ? "procs" : "tasks");
	err = err ?: check_each(j) ?: join_each(j);
	sol_tasks_free(j->tasks);
	kfree(text);
	return err;
}

/* @left: one task at least. */
static void note_others(const struct left *left)
{
	if (left->n == 1)
		sol_status_note("ok, but %d was in the exclusive group %s, and left it",
				left->task, left->group);
	else
		sol_status_note("ok, but %u tasks left their exclusive groups; %d was in %s",
				left->n, left->task, left->group);
}

static ssize_t join_store(struct config_item *item, const char *page,
			  size_t count, enum pid_type type)
{
	struct joining j = { .group = sol_to_group(item), .type = type };
	int err = sol_command_may(of_processes(&j) ? "procs" : "tasks", page, count);

	if (!err)
		err = join(&j, page, count);
	if (err || !j.left.n)
		return sol_status_done(err, count);
	note_others(&j.left);
	return count;
}

ssize_t sol_group_tasks_store(struct config_item *item, const char *page,
			      size_t count)
{
	return join_store(item, page, count, PIDTYPE_PID);
}

ssize_t sol_group_procs_store(struct config_item *item, const char *page,
			      size_t count)
{
	return join_store(item, page, count, PIDTYPE_TGID);
}

/* ---- stats, times ---- */

ssize_t sol_group_stats_show(struct config_item *item, char *page)
{
	struct sol_group *group = sol_to_group(item);
	struct sol_group_stats s;

	sol_group_sum(group, &s);
	return sysfs_emit(page,
		"tasks %u\npages %llu\nspilled %llu\npage_tables %llu\nhits %llu\nrefills %llu\nexhausted %llu\ncontradicted %llu\nzeroed %llu\nmoved %llu\ngrown %llu\nfreed %llu\nlarge %llu\nhuge_ok %u\ncapacity %llu\nlisted %llu\ncgroup_refused %llu\nlooked %llu\nwaited %llu\ncgroup_present %d\n",
		sol_group_tasks(group),
		sol_group_used(group), s.spilled,
		s.page_tables, s.hits, s.refills, s.exhausted, s.contradicted,
		s.zeroed, s.moved, s.grown, s.freed, s.large, group->huge_ok,
		sol_group_capacity(group), sol_store_listed(group),
		sol_cgroup_refused(group), s.looked, s.waited,
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

ssize_t sol_group_times_show(struct config_item *item, char *page)
{
	struct sol_group_stats s;

	sol_group_sum(sol_to_group(item), &s);
	return times_print(page, times_print(page, 0, "fault", s.fault),
			   "refill", s.refill);
}
