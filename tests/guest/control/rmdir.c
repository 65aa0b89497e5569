/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What ends early because somebody removes its group, and what does not. A group with a reserve
 * takes other colours: its frames there are listed by the writer, for as long as that takes.
 * Who removes the group does not wait for them. Strangers who only try to change the directory
 * end nothing.
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

/*
 * Beside a busy one the writer gets next to nothing of its CPU, as soon as it has begun. Return:
 * the frames that it listed, if its group was removed before it ended; -1: it was done too soon.
 * @err: what it gets.
 */
static long long listed_meanwhile(const char *path, const char *value, int err)
{
	const struct sched_param none = { 0 };
	long long before, now;
	pid_t writer, busy;
	bool ended = false;
	int status = 0;

	guest_write("lists", "drain");
	guest_group("slow", "4-9");
	if (guest_writef("groups/slow/reserve", "%lu", RESERVE))
		guest_die("reserve: %s", guest_status());
	before = guest_stat("stats", "taken");
	busy = on_cpu0(NULL, NULL);
	writer = on_cpu0(path, value);
	do {
		now = guest_stat("stats", "taken");
		ended = waitpid(writer, &status, WNOHANG) == writer;
	} while (!ended && now < before + BEGUN);
	if (!ended && sched_setscheduler(writer, SCHED_IDLE, &none))
		guest_die("sched_setscheduler");
	guest_ungroup("slow");
	if (!ended)
		waitpid(writer, &status, 0);
	guest_check(ended || WEXITSTATUS(status) == err, "rmdir-writer", "%s: %#x", path, status);
	now = guest_stat("stats", "taken") - before;
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	return ended ? -1 : now;
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

#define STRANGERS	4
#define STRANGERS_MEMORY	(48ul << 20)
#define RATE	(4ul << 20)	/* bytes a second, of a sixth of that memory */

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
	struct servant s = serve(NULL, STRANGERS_MEMORY, 0);
	pid_t pid[STRANGERS];
	int i, err;

	guest_write("lists", "drain");
	guest_group("slow", "4-9");
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
	return guest_exit();
}
