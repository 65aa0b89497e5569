/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cpuset.mems wins: a task that it keeps from all nodes of a group's colours
 * can't join, and the group's colours can't leave one of its tasks without.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool refused(int err)
{
	return err == -EINVAL && strstr(guest_status(), "cpuset.mems");
}

/* A process that may allocate on node 1 only; 0: not to be had here. */
static pid_t on_node_1(void)
{
	char pid[16];
	pid_t child;

	mkdir("cg", 0755);
	if (mount("none", "cg", "cgroup2", 0, NULL))
		return 0;
	set_kernel("cg/cgroup.subtree_control", "+cpuset");
	mkdir("cg/one", 0755);
	if (set_kernel("cg/one/cpuset.mems", "1"))
		return 0;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	snprintf(pid, sizeof(pid), "%d", child);
	if (set_kernel("cg/one/cgroup.procs", pid))
		return 0;
	return child;
}

static void check(pid_t pid)
{
	int err;

	guest_group("cs", NULL);
	if (guest_write("groups/cs/node", "0"))
		guest_die("node: %s", guest_status());
	err = guest_writef("groups/cs/tasks", "%d\n", pid);
	guest_check(refused(err), "cpuset-keeps-task-out", "returned %d, '%s'",
		    err, guest_status());
	if (guest_write("groups/cs/node", "0-1"))
		guest_die("node: %s", guest_status());
	err = guest_writef("groups/cs/tasks", "%d\n", pid);
	guest_check(!err, "cpuset-partly-in-common", "returned %d, '%s'", err,
		    guest_status());
	err = guest_write("groups/cs/node", "0");
	guest_check(refused(err) && !strcmp(guest_read("groups/cs/node"), "0-1\n"),
		    "cpuset-keeps-colours", "returned %d, '%s'", err,
		    guest_status());
}

int main(void)
{
	pid_t pid = 0;

	if (guest_map()->n_nodes < 2)
		guest_skip("cpuset", "the machine has one node");
	else if (!(pid = on_node_1()))
		guest_skip("cpuset", "no cpuset controller to be had");
	else
		check(pid);
	if (pid) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	guest_ungroup("cs");
	rmdir("cg/one");
	umount("cg");
	return guest_exit();
}
