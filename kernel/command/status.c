// SPDX-License-Identifier: GPL-2.0
/*
 * Refusals in words. last_cmd_status has one sentence about the last command, as
 * resctrl has it.
 *
 * The last few sentences are kept with the threads that they were for. A thread that
 * was refused reads its own sentence, even if others gave commands meanwhile. Another
 * thread, such as a shell's cat, reads the last one of all. Threads without
 * CAP_SYS_ADMIN, which only call mmap() (control/mmap_abi.c), have sentences apart, so that
 * their calls, however many, replace none of a command's. They read none of other users:
 * sentences name colours and tasks.
 *
 * Locking: a mutex keeps sentences whole. A spinlock guards the table of silent threads,
 * which so wait for no reader. They may be many, of any user: none looks at the others.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/uidgid.h>
#include "status.h"

#define KEPT	32	/* sentences */

/*
 * @pid, @born: the thread that it was for; ids are used again, so its start too
 * @uid: the thread's user
 */
struct sentence {
	pid_t pid;
	u64 born;
	kuid_t uid;
	char text[256];
};

static DEFINE_MUTEX(status_mutex);

/* The sentences of threads with CAP_SYS_ADMIN, or of those without it. */
struct shelf {
	struct sentence kept[KEPT];
	u32 last;
	u32 next;	/* the oldest comes after it */
};

static struct shelf shelves[2] = {
	{ .kept = { { .text = "ok" } } }, { .kept = { { .text = "ok" } } }
};

static bool is_ours(const struct sentence *s)
{
	return s->pid == current->pid && s->born == current->start_time;
}

static bool may_command(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
}

static struct shelf *shelf_of_current(void)
{
	return &shelves[may_command()];
}

/* The current thread's, or NULL. */
static struct sentence *own(struct shelf *shelf)
{
	int i;

	for (i = 0; i < KEPT; i++)
		if (is_ours(&shelf->kept[i]))
			return &shelf->kept[i];
	return NULL;
}

/* The place for the current thread's sentence: its own, or the oldest. */
static struct sentence *begin(void)
{
	struct shelf *shelf = shelf_of_current();
	struct sentence *s = own(shelf);

	if (!s) {
		shelf->next = (shelf->next + 1) % KEPT;
		s = &shelf->kept[shelf->next];
	}
	shelf->last = s - shelf->kept;
	s->pid = current->pid;
	s->born = current->start_time;
	s->uid = current_euid();
	return s;
}

/* ---- Silence ---- */

static DEFINE_SPINLOCK(silent_lock);
static DEFINE_HASHTABLE(silent, 10);	/* by task */

void sol_silence_begin(struct sol_silence *silence)
{
	silence->task = current;
	spin_lock(&silent_lock);
	hash_add(silent, &silence->link, (unsigned long)current);
	spin_unlock(&silent_lock);
}

void sol_silence_end(struct sol_silence *silence)
{
	spin_lock(&silent_lock);
	hash_del(&silence->link);
	spin_unlock(&silent_lock);
}

static bool is_silent(void)
{
	const struct sol_silence *silence;
	bool found = false;

	spin_lock(&silent_lock);
	hash_for_each_possible(silent, silence, link, (unsigned long)current)
		found |= silence->task == current;
	spin_unlock(&silent_lock);
	return found;
}

/* ---- Words ---- */

static __printf(1, 0) void say(const char *fmt, va_list args)
{
	struct sentence *s;

	if (is_silent())
		return;
	mutex_lock(&status_mutex);
	s = begin();
	vscnprintf(s->text, sizeof(s->text), fmt, args);
	mutex_unlock(&status_mutex);
}

int sol_deny(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	return err;
}
EXPORT_SYMBOL_GPL(sol_deny);

int sol_no_memory(const char *what)
{
	return sol_deny(-ENOMEM, "%s: no memory", what);
}

void sol_status_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}

void sol_status_ok(void)
{
	struct sentence *s;

	mutex_lock(&status_mutex);
	s = begin();
	strscpy(s->text, "ok", sizeof(s->text));
	mutex_unlock(&status_mutex);
}

ssize_t sol_status_done(int err, size_t count)
{
	if (err)
		return err;
	sol_status_ok();
	return count;
}
EXPORT_SYMBOL_GPL(sol_status_done);

ssize_t sol_status_show(char *page)
{
	struct shelf *shelf = shelf_of_current();
	bool all = may_command();
	struct sentence *s;
	ssize_t n;

	mutex_lock(&status_mutex);
	s = own(shelf);
	if (s)
		s->pid = 0;
	if (!s || !strcmp(s->text, "ok"))
		s = &shelf->kept[shelf->last];
	n = sysfs_emit(page, "%s\n",
		       all || uid_eq(s->uid, current_euid()) ? s->text : "-");
	mutex_unlock(&status_mutex);
	return n;
}
