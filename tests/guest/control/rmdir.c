/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What ends early because somebody removes its group, and what does not. A group with a reserve
 * takes other colours: its frames there are listed by the writer, for as long as that takes.
 * Who removes the group does not wait for them. Strangers who only try to change the directory
 * end nothing. One writer at a time fills a reserve.
 */
#include "servant.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define RESERVE	(64ul << 20)
#define BEGUN	64	/* frames: the writer is at it */
#define TRIES	10
#define PATIENCE	60	/* seconds; the writer sees in three that it shall end */

static pid_t on_cpu0(const char *path, const char *value)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	guest_run_on(0);
	alarm(PATIENCE); /* a writer that is waited for ends, too, and the check tells */
	while (!path)
		;
	alarm(0);
	_exit(-guest_write(path, value));
}

/**
 * struct slow - a writer that hardly gets on: beside a busy one it gets next to nothing of its
 * CPU, as soon as it has begun
 * @busy: the busy one
 * @writer: the writer
 * @before: frames that were taken out of free memory before it
 * @ended: it was done too soon; else the caller waits for it
 * @status: how
 */
struct slow {
	pid_t busy;
	pid_t writer;
	long long before;
	bool ended;
	int status;
};

/* Not `zero`: a kernel that poisons free memory has no frames that are known to be zero. */
static long long taken(void)
{
	return guest_stat("stats", "taken");
}

static struct slow begin_slowly(const char *path, const char *value)
{
	const struct sched_param none = { 0 };
	struct slow s = { .before = taken() };
	long long now;

	s.busy = on_cpu0(NULL, NULL);
	s.writer = on_cpu0(path, value);
	do {
		now = taken();
		s.ended = waitpid(s.writer, &s.status, WNOHANG) == s.writer;
	} while (!s.ended && now < s.before + BEGUN);
	if (!s.ended && sched_setscheduler(s.writer, SCHED_IDLE, &none))
		guest_die("sched_setscheduler");
	return s;
}

static void end_busy(struct slow *s)
{
	kill(s->busy, SIGKILL);
	waitpid(s->busy, NULL, 0);
}

/*
 * Return: the frames that the writer listed, if its group was removed before it ended; -1: it
 * was done too soon. @err: what it gets.
 */
static long long listed_meanwhile(const char *path, const char *value, int err)
{
	struct slow s;
	long long now;

	guest_write("lists", "drain");
	guest_group("slow", "4-9");
	if (guest_writef("groups/slow/reserve", "%lu", RESERVE))
		guest_die("reserve: %s", guest_status());
	s = begin_slowly(path, value);
	guest_ungroup("slow");
	if (!s.ended)
		waitpid(s.writer, &s.status, 0);
	guest_check(s.ended || WEXITSTATUS(s.status) == err, "rmdir-writer", "%s: %#x", path,
		    s.status);
	now = taken() - s.before;
	end_busy(&s);
	return s.ended ? -1 : now;
}

static void does_not_wait(const char *name, const char *path, const char *value, int err)
{
	const long long all = RESERVE / GUEST_PAGE;
	long long listed = -1;
	int i;

	for (i = 0; i < TRIES && listed < 0; i++)
		listed = listed_meanwhile(path, value, err);
	guest_check(listed >= 0 && listed < all, name, "%lld of %lld frames came meanwhile",
		    listed, all);
}

/* Return: a second writer came while the first one was at it. */
static bool second_writer(void)
{
	struct slow s;
	int err;

	guest_write("lists", "drain");
	guest_group("slow", "4-9");
	s = begin_slowly("groups/slow/reserve", "64M");
	if (!s.ended) {
		err = guest_write("groups/slow/reserve", "32M");
		guest_check(err == -EBUSY && strstr(guest_status(), "another write"),
			    "reserve-one-at-a-time", "%d %s", err, guest_status());
	}
	end_busy(&s);
	if (!s.ended) {
		waitpid(s.writer, &s.status, 0);
		guest_check(!s.status && atoll(guest_read("groups/slow/reserve")) == RESERVE,
			    "reserve-of-the-first", "%#x %s", s.status,
			    guest_read("groups/slow/reserve"));
	}
	guest_ungroup("slow");
	return !s.ended;
}

/* One that can't have its frames undoes what it did, and would undo the other's. */
static void reserve_has_one_writer(void)
{
	bool came = false;
	int i;

	for (i = 0; i < TRIES && !came; i++)
		came = second_writer();
	guest_check(came, "reserve-second-writer", "the first was always done");
}

#define STRANGERS	4
#define STRANGERS_MEMORY	(48ul << 20)
#define MOST	(8 * STRANGERS_MEMORY)
#define RATE	(4ul << 20)	/* bytes a second */
#define LEAST	((long long)(RATE / GUEST_PAGE))	/* frames in the colours */

/* Who is refused has the directory locked for a moment. */
static pid_t stranger(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setuid(65534))
		_exit(1);
	for (;;)
		mkdir(GUEST_ROOT "/groups/slow/mine", 0755);
}

static void strangers_end_nothing(void)
{
	unsigned long bytes = STRANGERS_MEMORY;
	pid_t pid[STRANGERS];
	struct servant s;
	int i, err;

	guest_write("lists", "drain");
	guest_group("slow", "4-9");
	s = serve(NULL, bytes, 0);
	/* It gets the frames first that earlier tests freed last, in other colours. */
	while (guest_stat("groups/slow/occupancy", "anon") < LEAST && bytes < MOST) {
		dismiss(&s);
		s = serve(NULL, bytes *= 2, 0);
	}
	for (i = 0; i < STRANGERS; i++)
		pid[i] = stranger();
	err = guest_writef("groups/slow/evict", "1 rate=%lu", RATE);
	guest_check(!err, "rmdir-stranger", "%d %s", err, guest_status());
	guest_check(guest_stat("groups/slow/evict", "took_us") > 500000, "rmdir-stranger-slow",
		    "%lld us", guest_stat("groups/slow/evict", "took_us"));
	for (i = 0; i < STRANGERS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	guest_check(dismiss(&s), "rmdir-stranger-content", "it changed");
	guest_ungroup("slow");
}

int main(void)
{
	strangers_end_nothing();
	guest_run_on(1);
	does_not_wait("rmdir-bank-set", "groups/slow/bank_set", "10-15", 0);
	does_not_wait("rmdir-auto", "groups/slow/auto", "6 node=1", 0);
	does_not_wait("rmdir-reserve", "groups/slow/reserve", "256M", ENOENT);
	reserve_has_one_writer();
	return guest_exit();
}
