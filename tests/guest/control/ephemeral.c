/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `ephemeral`: a group that goes with its last task. Its colours are free again
 * though nobody removed its directory, as when the program that made it was
 * killed; and not before a task was in it, nor while one is.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What `ephemeral` says once that is @wanted, or at last. */
static bool becomes(const char *wanted)
{
	int i;

	for (i = 0; i < 1000; i++) {
		if (!strcmp(guest_read("groups/a/ephemeral"), wanted))
			return true;
		usleep(10000);
	}
	return false;
}

static pid_t member_of(const char *group)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		guest_die("pipe");
	pid = fork();
	if (!pid) {
		if (!guest_join(group) && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		guest_die("the member did not join: %s", guest_status());
	close(ready[0]);
	return pid;
}

static pid_t member(void)
{
	return member_of("a");
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Can another exclusive group have what @a had? */
static int taken(void)
{
	int err;

	guest_group("b", NULL);
	guest_write("groups/b/mode", "exclusive");
	err = guest_write("groups/b/bank_set", "1-2");
	guest_ungroup("b");
	return err;
}

/* A group that becomes ephemeral after its tasks went waits for another one. */
static void emptied(void)
{
	int i;

	guest_group("a", "1");
	end(member());
	for (i = 0; i < 500 && guest_stat("groups/a/stats", "tasks"); i++)
		usleep(10000);
	guest_write("groups/a/ephemeral", "1");
	/* Another one that goes has all of them looked at. */
	guest_group("c", "2");
	guest_write("groups/c/ephemeral", "1");
	end(member_of("c"));
	for (i = 0; i < 500 && strcmp(guest_read("groups/c/ephemeral"), "gone\n"); i++)
		usleep(10000);
	guest_ungroup("c");
	guest_check(!strcmp(guest_read("groups/a/ephemeral"), "1\n"), "waits-for-another-task",
		    "%s", guest_read("groups/a/ephemeral"));
	end(member());
	guest_check(becomes("gone\n"), "goes-with-that", "%s", guest_read("groups/a/ephemeral"));
	guest_ungroup("a");
}

int main(void)
{
	pid_t one, two;

	guest_group("a", "1-2");
	guest_write("groups/a/mode", "exclusive");
	guest_check(guest_write("groups/a/ephemeral", "maybe") == -EINVAL,
		    "ephemeral-refuses", "took it");
	guest_check(!strcmp(guest_read("groups/a/ephemeral"), "0\n"),
		    "ephemeral-is-off", "%s", guest_read("groups/a/ephemeral"));
	if (guest_write("groups/a/ephemeral", "1"))
		guest_die("ephemeral: %s", guest_status());
	guest_check(taken() == -EBUSY, "waits-for-its-first-task", "gone");
	one = member();
	two = member();
	end(one);
	guest_check(taken() == -EBUSY, "stays-with-a-task", "gone");
	end(two);
	guest_check(becomes("gone\n"), "goes-with-the-last-task", "%s",
		    guest_read("groups/a/ephemeral"));
	guest_check(!taken(), "colors-are-free", "%s", guest_status());
	guest_check(guest_join("a") == -ENOENT &&
		    strstr(guest_status(), "the group was removed"),
		    "nobody-joins-what-is-gone", "%s", guest_status());
	guest_check(guest_write("groups/a/ephemeral", "0") == -ENOENT,
		    "does-not-come-back", "took it");
	guest_check(guest_write("groups/a/cgroup", "/gone") == -ENOENT &&
		    strstr(guest_status(), "the group was removed"),
		    "no-cgroup-for-what-is-gone", "%s", guest_status());
	guest_check(guest_write("groups/a/exhaust", "spill") == -ENOENT, "no-exhaust-for-what-is-gone",
		    "%s", guest_status());
	guest_check(guest_write("groups/a/text", "all") == -ENOENT, "no-text-for-what-is-gone", "%s",
		    guest_status());
	guest_check(guest_write("groups/a/bandwidth", "100000000 cpus=0") == -ENOENT,
		    "no-bandwidth-for-what-is-gone", "%s", guest_status());
	guest_check(!guest_write("groups/a/bandwidth", "off"), "takes-bandwidth-off", "%s",
		    guest_status());
	guest_check(!guest_write("groups/a/cgroup", "\n"), "unbinds-what-is-gone", "%s",
		    guest_status());
	guest_check(!guest_ungroup("a"), "directory-goes", "%s",
		    guest_status());
	emptied();
	return guest_exit();
}
