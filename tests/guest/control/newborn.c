/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Children whose fork does not end: the kernel writes their id to memory that a server
 * (here a userfaultfd) does not fill. Any user can have many of them, by FUSE. Whoever
 * binds cgroups or removes groups meanwhile waits for a moment, and not for each of them.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CHILDREN 60
#define SOON	30	/* seconds; each of them would take three */

/* A page that nobody fills. */
static char *unfilled(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg;
	char *p = guest_map_anon(GUEST_PAGE);
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);

	reg = (struct uffdio_register){
		.range = { (unsigned long)p, GUEST_PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &reg)) {
		guest_skip("newborn", strerror(errno));
		exit(0);
	}
	return p;
}

/* A process that never comes back from fork(). */
static pid_t forking(const char *group)
{
	pid_t pid = fork();

	if (!pid) {
		char *tid = unfilled();

		if (group && guest_join(group))
			_exit(1);
		syscall(SYS_clone, SIGCHLD | CLONE_PARENT_SETTID, 0, tid, 0, 0);
		_exit(2);
	}
	return pid;
}

/* Until its child is there, and has no pages: it has not come to run. */
static void wait_forking(pid_t pid)
{
	char path[64], text[32];
	int fd, n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	while (n < 1) {
		fd = open(path, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text));
		if (fd >= 0)
			close(fd);
		usleep(1000);
	}
}

static double started;

/* Nobody waited for each of the children. @err: of what was written since @started. */
static void check_soon(const char *name, int err)
{
	guest_check(!err && now_s() - started < SOON, name, "%d, %f s: %s", err,
		    now_s() - started, guest_status());
	started = now_s();
}

int main(void)
{
	pid_t pid[CHILDREN];
	long long refused;
	int i;

	guest_group("with", "1");
	guest_group("rest", "2-15");
	for (i = 0; i < CHILDREN; i++)
		pid[i] = forking(i % 2 ? "with" : NULL);
	for (i = 0; i < CHILDREN; i++)
		wait_forking(pid[i]);
	started = now_s();
	check_soon("newborn-group-goes", guest_ungroup("with"));
	check_soon("newborn-binds", guest_write("groups/rest/cgroup", "everything-else"));
	refused = guest_stat("groups/rest/stats", "cgroup_refused");
	/* The others count as members of the group that went. */
	guest_check(refused == CHILDREN / 2, "newborn-counted", "%lld of %d", refused,
		    CHILDREN / 2);
	started = now_s();
	check_soon("newborn-unbinds", guest_write("groups/rest/cgroup", "\n"));
	for (i = 0; i < CHILDREN; i++)
		kill(pid[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	guest_check(!guest_ungroup("rest"), "newborn-rest-goes", "%s", guest_status());
	return guest_exit();
}
