// SPDX-License-Identifier: GPL-2.0
/*
 * Exec: a process gets the colours that a rule grants.
 *
 * A direct hook on copy_string_kernel sees every execve() before anything lies in its
 * new address space, so that even the pages of its arguments are in colour. If a rule
 * matches, the process gets an implicit group of its own, with free colours on the
 * nodes of the CPUs that it may use. The old program's pages stay where they are.
 * Whether the exec succeeded is known when the task returns to user space: a task work
 * compares self_exec_id, which only a success changes, and puts the task back if it
 * is the same.
 *
 * Some kernels copy the arguments before they open the file (SOL_EXEC_OPENS_LATE): there
 * we ask the cache for the path, and a second hook corrects what the cache did not
 * know.
 *
 * Differs from the paper: children that execute a program which no rule matches stay in
 * their parent's group. A task in a group that was made by hand stays there, unless it is
 * there as one of everything else: that group has what no rule took.
 *
 * Locking: tries_lock guards the list of execs under way. Unloading waits by an SRCU of
 * this file, since sol_lists_users may be waited for under sol_group_mutex.
 */
#include <linux/binfmts.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/namei.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "../command/status.h"
#include "../compat/exec.h"
#include "../compat/trampoline.h"
#include "../group/member.h"
#include "../hook/hook.h"
#include "../palette/quota.h"
#include "binding.h"
#include "rule.h"

/* An exec under way; whether it succeeds is not known yet. */
struct exec_try {
	struct callback_head work;
	struct list_head link;
	struct task_struct *task;
	struct sol_group *before;	/* referenced, or NULL */
	u64 exec_id;
	u64 serial;			/* of the rule that matched */
};

DEFINE_STATIC_SRCU(execs);
static DEFINE_SPINLOCK(tries_lock);
static LIST_HEAD(tries);
static atomic_t n_tries = ATOMIC_INIT(0);

static void try_end(struct exec_try *try)
{
	spin_lock(&tries_lock);
	list_del(&try->link);
	spin_unlock(&tries_lock);
	if (try->before)
		sol_group_put(try->before);
	put_task_struct(try->task);
	kfree(try);
}

/* On the way back to user space, or in exit. */
static void exec_done(struct callback_head *work)
{
	struct exec_try *try = container_of(work, struct exec_try, work);

	if (current->self_exec_id == try->exec_id)
		sol_member_undo_exec(try->before);
	try_end(try);
	/* The last touch: sol_rule_exit() waits for it. */
	atomic_dec(&n_tries);
}

static struct exec_try *try_new(u64 serial, struct sol_group *before)
{
	struct exec_try *try = kzalloc(sizeof(*try), GFP_KERNEL);

	if (!try)
		return NULL;
	atomic_inc(&n_tries);
	try->task = get_task_struct(current);
	try->exec_id = current->self_exec_id;
	try->serial = serial;
	if (before)
		sol_group_get(before);
	try->before = before;
	init_task_work(&try->work, exec_done);
	spin_lock(&tries_lock);
	list_add(&try->link, &tries);
	spin_unlock(&tries_lock);
	return try;
}

/*
 * Join a group of the grant, unless the exec fails. If the group got no colours, the
 * try tells exec_opened() that a rule matched.
 */
static void exec_join(const struct sol_rule_grant *grant, struct sol_group *before)
{
	struct exec_try *try = try_new(grant->serial, before);
	struct sol_group *group;
	int err = 0;

	if (!try)
		return;
	group = sol_rule_group(grant);
	if (!IS_ERR(group)) {
		err = sol_member_join_exec(group);
		sol_group_put(group);
	}
	if (err || task_work_add(current, &try->work, TWA_RESUME))
		exec_done(&try->work);
}

/* The grant of the rules to the exec of @path; ->serial is 0 if none matches. */
static struct sol_rule_grant exec_grant(const struct linux_binprm *bprm,
				    const struct path *path)
{
	/* The kernel makes up a name relative to a file descriptor. */
	const char *given = bprm->fdpath ? "" : bprm->filename;
	char *buf = kmalloc(PATH_MAX, GFP_KERNEL);
	struct sol_rule_grant grant = { 0 };

	if (buf)
		grant = sol_rule_find(given, path, buf);
	kfree(buf);
	return grant;
}

/* May a rule take the current task out of @before, NULL: none? */
static bool may_take(const struct sol_group *before)
{
	return !before || before->implicit || sol_binding_is_else(current, before->id);
}

static void exec_path(const struct linux_binprm *bprm, const struct path *path)
{
	struct sol_group *before = sol_member_group(current);
	struct sol_rule_grant grant = { 0 };

	if (may_take(before))
		grant = exec_grant(bprm, path);
	if (grant.serial)
		exec_join(&grant, before);
	sol_quota_put(grant.quota);
	if (before)
		sol_group_put(before);
}

#ifdef SOL_EXEC_OPENS_LATE
/* Look the path up in the cache only: a file server is not asked. */
static void exec_named(const struct linux_binprm *bprm)
{
	struct path path;

	if (bprm->fdpath || kern_path(bprm->filename,
				      LOOKUP_FOLLOW | LOOKUP_CACHED, &path))
		return;
	exec_path(bprm, &path);
	path_put(&path);
}

/* The current task's exec under way; it alone makes and ends it. */
static struct exec_try *try_of_current(void)
{
	struct exec_try *try, *found = NULL;

	spin_lock(&tries_lock);
	list_for_each_entry(try, &tries, link)
		if (try->task == current)
			found = try;
	spin_unlock(&tries_lock);
	return found;
}

/* Another rule may match the file than matched the path before, or none. */
static void exec_opened(const struct linux_binprm *bprm)
{
	struct exec_try *try = try_of_current();
	struct sol_rule_grant grant;
	struct sol_group *group;

	if (!try) {
		exec_path(bprm, &bprm->file->f_path);
		return;
	}
	grant = exec_grant(bprm, &bprm->file->f_path);
	if (grant.serial != try->serial) {
		sol_member_undo_exec(try->before);
		try->serial = grant.serial;
		group = grant.serial ? sol_rule_group(&grant) : NULL;
		if (!IS_ERR_OR_NULL(group)) {
			sol_member_join_exec(group);
			sol_group_put(group);
		}
	}
	sol_quota_put(grant.quota);
}

/* Before security_bprm_creds_for_exec(), which always goes on. */
unsigned long sol_rule_opened(const struct linux_binprm *bprm);
unsigned long sol_rule_opened(const struct linux_binprm *bprm)
{
	struct sol_silence silence;
	int inside;

	if (!sol_rule_count() && !atomic_read(&n_tries))
		return SOL_PASS;
	inside = srcu_read_lock(&execs);
	sol_silence_begin(&silence);
	exec_opened(bprm);
	sol_silence_end(&silence);
	srcu_read_unlock(&execs, inside);
	return SOL_PASS;
}

SOL_TRAMPOLINE(sol_rule_opened_trampoline, sol_rule_opened, SOL_IF_ANY);
#endif

static void exec_begins(const struct linux_binprm *bprm)
{
#ifdef SOL_EXEC_OPENS_LATE
	exec_named(bprm);
#else
	exec_path(bprm, &bprm->file->f_path);
#endif
}

/*
 * Before copy_string_kernel(), which always goes on. The first string of an exec
 * is its name; ->exec is set after that.
 */
unsigned long sol_rule_exec(const char *arg, const struct linux_binprm *bprm);
unsigned long sol_rule_exec(const char *arg, const struct linux_binprm *bprm)
{
	struct sol_silence silence;
	int inside;

	if (bprm->exec || !sol_rule_count())
		return SOL_PASS;
	inside = srcu_read_lock(&execs);
	sol_silence_begin(&silence);
	exec_begins(bprm);
	sol_silence_end(&silence);
	srcu_read_unlock(&execs, inside);
	return SOL_PASS;
}

SOL_TRAMPOLINE(sol_rule_trampoline, sol_rule_exec, SOL_IF_ANY);

/* ---- Load and unload ---- */

static struct sol_hook rule_hooks[] = {
	SOL_HOOK("copy_string_kernel", sol_rule_trampoline),
#ifdef SOL_EXEC_OPENS_LATE
	SOL_HOOK("security_bprm_creds_for_exec", sol_rule_opened_trampoline),
#endif
};

typedef struct callback_head *
cancel_fn(struct task_struct *task,
	  bool (*match)(struct callback_head *work, void *data), void *data);
DEFINE_STATIC_CALL_NULL(sol_task_work_cancel, cancel_fn);

int sol_rule_init(void)
{
	return sol_rules_init() ?:
	       sol_bind(sol_task_work_cancel, "task_work_cancel_match") ?:
	       sol_hooks_attach(rule_hooks, ARRAY_SIZE(rule_hooks));
}

static bool try_match(struct callback_head *work, void *data)
{
	return work->func == exec_done;
}

/* Some task with an exec under way, with a reference; or NULL. */
static struct task_struct *try_task(void)
{
	struct task_struct *task = NULL;

	spin_lock(&tries_lock);
	if (!list_empty(&tries))
		task = get_task_struct(list_first_entry(&tries, struct exec_try,
							link)->task);
	spin_unlock(&tries_lock);
	return task;
}

/*
 * Cancel the work of execs under way: a debugger may hold a task in the middle of one
 * for ever. A work that can't be cancelled runs just now.
 */
static void tries_cancel(void)
{
	struct callback_head *work;
	struct task_struct *task;

	while (atomic_read(&n_tries)) {
		task = try_task();
		work = task ? static_call(sol_task_work_cancel)(task, try_match,
								NULL) : NULL;
		if (work) {
			try_end(container_of(work, struct exec_try, work));
			atomic_dec(&n_tries);
		} else {
			usleep_range(500, 1000);
		}
		if (task)
			put_task_struct(task);
	}
}

void sol_rule_exit(void)
{
	sol_hooks_detach(rule_hooks, ARRAY_SIZE(rule_hooks));
	synchronize_srcu(&execs);
	tries_cancel();
	/* exec_done() may be past its last touch, and not yet out of our text. */
	synchronize_rcu_tasks();
	sol_rules_exit();
}
