/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A file system that never answers, as any user may mount one. Execs below it wait, and
 * nobody else does; the module goes while they wait. A fault on its file holds the lock
 * of its address space; who puts that process into a group or recolours it ends all the
 * same. And one that is mounted read-only: its server may change files, and a task in
 * colour sees that.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS	30000

/* ---- a server that takes requests and answers none but the first ---- */

static int mount_fuse(const char *at, unsigned long flags)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	if (fd < 0)
		guest_die("/dev/fuse: %s", strerror(errno));
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	mkdir(at, 0755);
	if (mount("silent", at, "fuse", MS_NODEV | MS_NOSUID | flags, options))
		guest_die("mount: %s", strerror(errno));
	return fd;
}

static int mount_silent(const char *at)
{
	return mount_fuse(at, 0);
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

/* ---- a fault that nobody answers ---- */

#define FILE_ID	2

static void reply(int fd, u64 unique, int err, const void *what, size_t size)
{
	static char buf[(64 << 10) + 512];
	struct fuse_out_header head = {
		.len = sizeof(head) + size, .error = -err, .unique = unique
	};

	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), what, size);
	if (write(fd, buf, head.len) < 0 && errno != ENOENT)
		_exit(1);
}

/*
 * Serve one file, whose first page can't be read @fails times, and then never is; or, with
 * @content, is full of that.
 */
static void serve_file(int fd, int fails, int asked, const volatile char *content)
{
	static char page[64 << 10];
	struct fuse_attr attr = { .ino = FILE_ID, .size = GUEST_PAGE, .nlink = 1,
				  .mode = S_IFREG | 0444, .blksize = GUEST_PAGE };
	struct fuse_entry_out entry = { .nodeid = FILE_ID, .entry_valid = 3600,
					.attr_valid = 3600, .attr = attr };
	struct fuse_attr_out attr_out = { .attr_valid = 3600, .attr = attr };
	struct fuse_open_out opened = { .fh = 1 };
	u64 unique;

	for (;;) {
		switch (next_request(fd, &unique)) {
		case FUSE_LOOKUP:
			reply(fd, unique, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			reply(fd, unique, 0, &attr_out, sizeof(attr_out));
			break;
		case FUSE_OPEN:
			reply(fd, unique, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			if (content) {
				memset(page, *content, GUEST_PAGE);
				reply(fd, unique, 0, page, GUEST_PAGE);
			} else if (fails-- > 0)
				reply(fd, unique, EIO, "", 0);
			else if (write(asked, "", 1) != 1)
				_exit(1);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
			break;
		default:
			reply(fd, unique, ENOSYS, "", 0);
		}
	}
}

static void *fault(void *at)
{
	return (void *)(long)*(volatile char *)at;
}

/* Its thread waits in a fault, and has areas that may be merged. */
static void faults(const char *path)
{
	char *merged = guest_map_anon(2 * GUEST_PAGE);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	pthread_t thread;
	void *at;

	if (fd < 0)
		_exit(1);
	at = mmap(NULL, GUEST_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED || madvise(merged, GUEST_PAGE, MADV_MERGEABLE) ||
	    pthread_create(&thread, NULL, fault, at))
		_exit(1);
	/* This waits for the lock, and readers wait behind it. */
	usleep(100000);
	munmap(merged + GUEST_PAGE, GUEST_PAGE);
	for (;;)
		pause();
}

/* Does the fault of @pid wait for an answer? It may end by an error before. */
static bool waits(pid_t pid, int asked)
{
	struct pollfd asks = { .fd = asked, .events = POLLIN };
	int i;

	for (i = 0; i < WAIT_MS; i += 20) {
		if (poll(&asks, 1, 20) == 1)
			return true;
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return false;
	}
	guest_die("no fault");
	return false;
}

/* Who joins or recolours a process whose fault waits ends soon. */
static void beside_a_fault(pid_t pid)
{
	char command[200];
	int status;

	snprintf(command, sizeof(command), "echo %d >%s/groups/mute/procs", pid,
		 GUEST_ROOT);
	status = status_soon(command);
	guest_check(status == 0, "joins-beside-a-fault", "%d %s", status,
		    guest_status());
	snprintf(command, sizeof(command), "echo %d >%s/groups/mute/recolor", pid,
		 GUEST_ROOT);
	status = status_soon(command);
	guest_check(status == 0, "recolours-beside-a-fault", "%d %s", status,
		    guest_status());
}

/*
 * A fault gives the lock back before it reads, but keeps it when it tries again, which
 * kernels do after one error or two. Return: it kept it: a recolouring saw no page.
 */
static bool fault_waits(int fails)
{
	int fd = mount_silent("mute"), asked[2];
	pid_t server, pid;
	bool kept = false;

	answer_init(fd);
	guest_group("mute", "3");
	if (pipe(asked))
		guest_die("pipe");
	server = fork();
	if (!server)
		serve_file(fd, fails, asked[1], NULL);
	close(fd);
	pid = fork();
	if (!pid)
		faults("mute/file");
	if (waits(pid, asked[0])) {
		usleep(200000);
		beside_a_fault(pid);
		kept = !guest_stat("groups/mute/recolor", "seen");
	}
	kill(pid, SIGKILL);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	waitpid(pid, NULL, 0);
	close(asked[0]);
	close(asked[1]);
	umount2("mute", MNT_FORCE | MNT_DETACH);
	guest_check(!guest_ungroup("mute"), "group-goes-after-a-fault", "%s",
		    guest_status());
	return kept;
}

/* ---- a file that its server changes ---- */

/* In a group: says what the file has each time that it is asked. */
static void reads_again(const char *path, int ask, int say)
{
	int fd = guest_join("fresh") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	volatile char *at = mmap(NULL, GUEST_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	char c;

	while (at != MAP_FAILED && read(ask, &c, 1) == 1) {
		c = *at;
		if (write(say, &c, 1) != 1)
			break;
	}
	_exit(1);
}

static char says(int ask, int say)
{
	char c = 0;

	if (write(ask, "", 1) != 1 || read(say, &c, 1) != 1)
		guest_die("the reader failed: %s", guest_status());
	return c;
}

static void tell_changed(int fd)
{
	struct {
		struct fuse_out_header head;
		struct fuse_notify_inval_inode_out inval;
	} out = {
		.head = { .len = sizeof(out), .error = FUSE_NOTIFY_INVAL_INODE },
		.inval = { .ino = FILE_ID },
	};

	if (write(fd, &out, sizeof(out)) != sizeof(out))
		guest_die("inval: %s", strerror(errno));
}

static void changed_by_server(void)
{
	volatile char *content = mmap(NULL, GUEST_PAGE, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = mount_fuse("remote", MS_RDONLY), ask[2], say[2];
	pid_t server, pid;
	char before, after;

	answer_init(fd);
	guest_group("fresh", "3");
	if (content == MAP_FAILED || pipe(ask) || pipe(say))
		guest_die("pipe");
	*content = 'a';
	server = fork();
	if (!server)
		serve_file(fd, 0, -1, content);
	pid = fork();
	if (!pid)
		reads_again("remote/file", ask[0], say[1]);
	before = says(ask[1], say[0]);
	*content = 'b';
	tell_changed(fd);
	after = says(ask[1], say[0]);
	guest_check(before == 'a' && after == 'b', "sees-what-the-server-changed",
		    "'%c', then '%c'", before, after);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(fd);
	umount2("remote", MNT_FORCE | MNT_DETACH);
	guest_ungroup("fresh");
}

int main(void)
{
	char here[256], path[300], *map = strdup(guest_read("map"));
	int fuse, status, first;
	pid_t direct, through;
	u64 unique;

	if (!getcwd(here, sizeof(here)))
		guest_die("getcwd");
	changed_by_server();
	if (!fault_waits(1) && !fault_waits(2))
		guest_skip("fault-keeps-the-lock", "a fault never keeps it on this kernel");
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
