/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Execs below a file system that never answers, as any user may mount one: they
 * wait for it, and nobody else does. The module goes while they wait.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS	30000

/* ---- a server that takes requests and answers none but the first ---- */

static int mount_silent(const char *at)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	if (fd < 0)
		guest_die("/dev/fuse: %s", strerror(errno));
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	mkdir(at, 0755);
	if (mount("silent", at, "fuse", MS_NODEV | MS_NOSUID, options))
		guest_die("mount: %s", strerror(errno));
	return fd;
}

/* The next request of the kernel; asking for it waits. */
static u32 next_request(int fd, u64 *unique)
{
	static char buf[1 << 17];
	const struct fuse_in_header *in = (void *)buf;

	if (read(fd, buf, sizeof(buf)) < (ssize_t)sizeof(*in))
		guest_die("fuse: %s", strerror(errno));
	*unique = in->unique;
	return in->opcode;
}

static void answer_init(int fd)
{
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} out = {
		.head = { .len = sizeof(out) },
		.init = { .major = FUSE_KERNEL_VERSION,
			  .minor = FUSE_KERNEL_MINOR_VERSION,
			  .max_write = 4096 },
	};

	if (next_request(fd, (u64 *)&out.head.unique) != FUSE_INIT)
		guest_die("fuse: no FUSE_INIT");
	if (write(fd, &out, sizeof(out)) != sizeof(out))
		guest_die("fuse: %s", strerror(errno));
}

/* ---- */

static pid_t execs(const char *path)
{
	pid_t pid = fork();

	if (!pid) {
		execl(path, path, NULL);
		_exit(errno == ENOTCONN || errno == ECONNABORTED ? 0 : 1);
	}
	return pid;
}

/* A child that runs @command, or its status after some time; -1: not yet. */
static int status_soon(const char *command)
{
	pid_t pid = fork();
	int status, i;

	if (!pid)
		_exit(system(command) ? 1 : 0);
	for (i = 0; i < WAIT_MS; i += 20) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WEXITSTATUS(status);
		usleep(20000);
	}
	return -1;
}

static void rule_for(const char *glob)
{
	if (mkdir(GUEST_ROOT "/rules/r", 0755) ||
	    guest_write("rules/r/path", glob) ||
	    guest_write("rules/r/uid", "any") ||
	    guest_write("rules/r/enabled", "1"))
		guest_die("rule: %s", guest_status());
}

static void script(const char *path, const char *interpreter)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	dprintf(fd, "#!%s\n", interpreter);
	close(fd);
}

int main(void)
{
	char here[256], path[300], *map = strdup(guest_read("map"));
	int fuse, status, first;
	pid_t direct, through;
	u64 unique;

	if (!getcwd(here, sizeof(here)))
		guest_die("getcwd");
	fuse = mount_silent("silent");
	answer_init(fuse);
	rule_for("*");

	snprintf(path, sizeof(path), "%s/silent/program", here);
	script("script", path);
	direct = execs(path);
	guest_check(next_request(fuse, &unique) == FUSE_LOOKUP, "exec-waits",
		    "it asks for something else");
	through = execs("./script");
	usleep(200000);
	guest_check(status_soon("exec /bin/true") == 0, "others-execute",
		    "they wait too");

	/* Rules don't keep the module, but their directories do. */
	rmdir(GUEST_ROOT "/rules/r");
	first = status_soon("exec rmmod soloist");
	guest_check(first == 0, "module-goes", "%s",
		    first < 0 ? "it waits" : "it does not");
	guest_check(waitpid(direct, &status, WNOHANG) == 0 &&
		    waitpid(through, &status, WNOHANG) == 0, "execs-still-wait",
		    "they ended: %#x", status);

	umount2("silent", MNT_FORCE | MNT_DETACH);
	close(fuse);
	waitpid(direct, &status, 0);
	guest_check(status == 0, "exec-fails-in-the-end", "status %#x", status);
	waitpid(through, &status, 0);
	guest_check(status == 0, "script-fails-in-the-end", "status %#x",
		    status);
	if (first)
		sleep(2);	/* now it may go */
	snprintf(path, sizeof(path), "insmod %s", getenv("MODULE"));
	if (system(path) || guest_write("map", map))
		guest_die("%s: %s", path, guest_status());
	return guest_exit();
}
