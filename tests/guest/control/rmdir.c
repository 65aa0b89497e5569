/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A group with a reserve takes other colours: its frames there are listed by the writer, for
 * as long as that takes. Who removes the group does not wait for them.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

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
	_exit(guest_write(path, value) != 0);
}

/*
 * Beside a busy one the writer gets next to nothing of its CPU, as soon as it has begun. Return:
 * the frames that it listed, if @group was removed before it ended; -1: it was done too soon.
 */
static long long listed_meanwhile(const char *path, const char *value)
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
	before = guest_stat("stats", "zero");
	busy = on_cpu0(NULL, NULL);
	writer = on_cpu0(path, value);
	do {
		now = guest_stat("stats", "zero");
		ended = waitpid(writer, &status, WNOHANG) == writer;
	} while (!ended && now < before + BEGUN);
	if (!ended && sched_setscheduler(writer, SCHED_IDLE, &none))
		guest_die("sched_setscheduler");
	guest_ungroup("slow");
	if (!ended)
		waitpid(writer, &status, 0);
	guest_check(!status, "rmdir-writer", "%s: %#x", path, status);
	now = guest_stat("stats", "zero") - before;
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	return ended ? -1 : now;
}

static void does_not_wait(const char *name, const char *path, const char *value)
{
	const long long all = RESERVE / GUEST_PAGE;
	long long listed = -1;
	int i;

	for (i = 0; i < TRIES && listed < 0; i++)
		listed = listed_meanwhile(path, value);
	guest_check(listed >= 0 && listed < all, name, "%lld of %lld frames came meanwhile",
		    listed, all);
}

int main(void)
{
	guest_run_on(1);
	does_not_wait("rmdir-bank-set", "groups/slow/bank_set", "10-15");
	does_not_wait("rmdir-auto", "groups/slow/auto", "6 node=1");
	return guest_exit();
}
