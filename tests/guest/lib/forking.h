/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Children whose fork does not end: the kernel writes their id to memory that a server
 * (here a userfaultfd) does not fill. Any user can have many of them, by FUSE.
 */
#ifndef FORKING_H
#define FORKING_H

#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* A page that nobody fills. */
static inline char *unfilled(void)
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
		guest_skip("forking", strerror(errno));
		exit(0);
	}
	return p;
}

/* A process that never comes back from fork(). When it is killed, its child waits for a signal. */
static inline pid_t forking(const char *group)
{
	pid_t pid = fork();

	if (!pid) {
		char *tid = unfilled();

		if (group && guest_join(group))
			_exit(1);
		if (!syscall(SYS_clone, SIGCHLD | CLONE_PARENT_SETTID, 0, tid, 0, 0))
			pause();
		_exit(2);
	}
	return pid;
}

/* Until its child is there, which has not come to run. Return: the child. */
static inline pid_t wait_forking(pid_t pid)
{
	char path[64], text[32] = "";
	int fd, n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	while (n < 1) {
		fd = open(path, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		usleep(1000);
	}
	return atoi(text);
}

#endif /* FORKING_H */
