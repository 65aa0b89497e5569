/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A group bound to a cgroup: what runs there, is moved there or is forked into
 * it is in the group's colours, and what is moved away no longer.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CGROUPS	"/sys/fs/cgroup"
#define PAGES	64ul

static void make(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), CGROUPS "%s", path);
	if (mkdir(full, 0755) && errno != EEXIST)
		guest_die("mkdir %s: %s", full, strerror(errno));
}

static int gone(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), CGROUPS "%s", path);
	return rmdir(full) ? -errno : 0;
}

/* Move @pid (0: the caller), with all its threads. */
static void enter(const char *path, pid_t pid)
{
	char full[256], text[16];
	int fd, n = snprintf(text, sizeof(text), "%d", pid);

	snprintf(full, sizeof(full), CGROUPS "%s/cgroup.procs", path);
	fd = open(full, O_WRONLY);
	if (fd < 0 || write(fd, text, n) != n)
		guest_die("%s: %s", full, strerror(errno));
	close(fd);
}

static int bind_to(const char *group, const char *path)
{
	char file[64];

	snprintf(file, sizeof(file), "groups/%s/cgroup", group);
	return guest_write(file, path);
}

/* Are new pages of the caller all in @sets? */
static bool colored(const char *sets)
{
	char *p = guest_map_anon(PAGES * GUEST_PAGE);
	struct guest_audit sum;

	guest_touch(p, PAGES * GUEST_PAGE);
	sum = guest_audit_range(p, PAGES * GUEST_PAGE, sets, NULL);
	return sum.in == (long)PAGES;
}

static bool is_member(const char *group, pid_t pid)
{
	char file[64], line[16];
	const char *at;

	snprintf(file, sizeof(file), "groups/%s/members", group);
	snprintf(line, sizeof(line), "%d\n", pid);
	at = strstr(guest_read(file), line);
	return at && (at == guest_read(file) || at[-1] == '\n');
}

static bool succeeds(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* A child that enters @path; @sets: its pages are there, NULL: it is plain. */
static bool child_in(const char *path, const char *group, const char *sets)
{
	pid_t pid = fork();

	if (pid)
		return succeeds(pid);
	enter(path, 0);
	if (!sets)
		_exit(is_member(group, getpid()));
	_exit(!(colored(sets) && is_member(group, getpid())));
}

/* The same, but forked right into it: nothing of it was ever elsewhere. */
static bool child_made_in(const char *path, const char *sets)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD };
	char full[256];
	pid_t pid;

	snprintf(full, sizeof(full), CGROUPS "%s", path);
	args.cgroup = open(full, O_RDONLY | O_DIRECTORY);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		_exit(!colored(sets));
	close(args.cgroup);
	return pid > 0 && succeeds(pid);
}

static bool child_of_child(const char *path, const char *sets)
{
	pid_t pid = fork();

	if (pid)
		return succeeds(pid);
	enter(path, 0);
	pid = fork();
	if (!pid)
		_exit(!colored(sets));
	_exit(!succeeds(pid));
}

/* One that runs there before, and waits to be asked by a byte. */
static pid_t runner(const char *path, const char *sets, int *ask)
{
	int fds[2], in[2];
	pid_t pid;
	char c;

	if (pipe(fds) || pipe(in))
		guest_die("pipe");
	pid = fork();
	if (pid) {
		close(fds[0]);
		*ask = fds[1];
		close(in[1]);
		if (read(in[0], &c, 1) != 1)
			guest_die("%s was not entered", path);
		close(in[0]);
		return pid;
	}
	close(fds[1]);
	enter(path, 0);
	if (write(in[1], "x", 1) != 1)
		_exit(1);
	while (read(fds[0], &c, 1) != 1)
		;
	_exit(!colored(sets));
}

static void refused(const char *path, const char *words)
{
	int err = bind_to("cg2", path);

	guest_check(err && strstr(guest_status(), words), words,
		    "'%s': %d, %s", path, err, guest_status());
}

static void test_moves(void)
{
	pid_t pid;

	guest_check(child_in("/bound", "cg1", "0-1"), "attached", "not");
	guest_check(child_of_child("/bound", "0-1"), "forked", "not");
	guest_check(child_made_in("/bound", "0-1"), "cloned-into", "not");
	make("/bound/plain");
	make("/bound/inner");
	guest_check(child_in("/bound/plain", "cg1", "0-1"), "nested", "not");
	guest_check(!bind_to("cg2", "/bound/inner"), "bind-nested", "%s",
		    guest_status());
	guest_check(child_in("/bound/inner", "cg2", "2-3"), "nearest-decides",
		    "not");
	pid = fork();
	if (!pid) {
		enter("/bound", 0);
		enter("", 0);
		_exit(is_member("cg1", getpid()));
	}
	guest_check(succeeds(pid), "moved-out", "still in");
	pid = fork();
	if (!pid) {
		guest_join("cg3");
		make("/other");
		enter("/other", 0);
		_exit(!is_member("cg3", getpid()));
	}
	guest_check(succeeds(pid), "by-hand-stays", "left its group");
}

/* A group has the tasks of all its cgroups, and no other group can have one of them. */
static void test_several(void)
{
	make("/one");
	make("/two");
	guest_check(!bind_to("cg1", "/one\n/two\n/one\n") &&
		    !strcmp(guest_read("groups/cg1/cgroup"), "/one\n/two\n"),
		    "several-bound", "%s: %s", guest_status(),
		    guest_read("groups/cg1/cgroup"));
	guest_check(child_in("/one", "cg1", "0-1") &&
		    child_in("/two", "cg1", "0-1"), "several-join", "not");
	refused("/three\n/two", "is bound to group cg1");
	guest_check(!strcmp(guest_read("groups/cg2/cgroup"), "/bound/inner\n"),
		    "several-or-none", "%s", guest_read("groups/cg2/cgroup"));
	guest_check(guest_stat("groups/cg1/stats", "cgroup_present") == 1,
		    "several-present", "not");
	gone("/two");
	guest_check(guest_stat("groups/cg1/stats", "cgroup_present") == 0,
		    "several-one-missing", "all are said to be there");
	make("/two");
	guest_check(!bind_to("cg1", "/two") && child_in("/one", "cg1", NULL) &&
		    child_in("/two", "cg1", "0-1"), "several-then-one", "%s",
		    guest_status());
	guest_check(!bind_to("cg1", "\n"), "several-unbound", "%s", guest_status());
	gone("/one");
	gone("/two");
}

#define SLEEPERS	4000	/* threads that join first, which takes a while */
#define RELAYS		8

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void sleep_in_threads(int ready)
{
	pthread_t thread;
	int i;

	for (i = 0; i < SLEEPERS; i++)
		if (pthread_create(&thread, NULL, sleeper, NULL))
			_exit(1);
	if (write(ready, "", 1) == 1)
		sleeper(NULL);
	_exit(1);
}

/* Each child goes on as its parent ends: none of them lives until its turn to join. */
static void relay(volatile bool *stop)
{
	while (!*stop) {
		if (fork() > 0)
			_exit(0);
		usleep(1000);
	}
	sleeper(NULL);
}

/* Processes in @path; @in: those that are in @group, too. */
static int relays_of(const char *path, const char *group, int *in)
{
	char full[256];
	int pid, n = 0;
	FILE *f;

	*in = 0;
	snprintf(full, sizeof(full), CGROUPS "%s/cgroup.procs", path);
	f = fopen(full, "r");
	while (f && fscanf(f, "%d", &pid) == 1) {
		n++;
		*in += is_member(group, pid);
	}
	if (f)
		fclose(f);
	return n;
}

/* What forks while its cgroup is being bound is in the group in the end. */
static void test_forks_meanwhile(void)
{
	volatile bool *stop = mmap(NULL, GUEST_PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, n, in, ready[2];
	pid_t pid;
	char c;

	make("/forks");
	if (stop == MAP_FAILED || pipe(ready))
		guest_die("forks: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		enter("/forks", 0);
		sleep_in_threads(ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		guest_die("no %d threads", SLEEPERS);
	for (i = 0; i < RELAYS; i++) {
		if (!fork()) {
			enter("/forks", 0);
			relay(stop);
		}
	}
	usleep(100000);
	if (bind_to("cg3", "/forks"))
		guest_die("bind: %s", guest_status());
	*stop = true;
	usleep(200000);
	kill(pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	n = relays_of("/forks", "cg3", &in);
	guest_check(n == RELAYS && in == n, "forks-while-bound",
		    "%d of %d are in the group", in, n);
	set_kernel(CGROUPS "/forks/cgroup.kill", "1");
	bind_to("cg3", "\n");
	for (i = 0; i < 100 && gone("/forks"); i++)
		usleep(20000);
}

/* A loop over all tasks takes some out of exclusive groups: the kernel says so. */
static void test_leaves_exclusive(void)
{
	char file[64], text[16];
	pid_t pid;
	int ask;

	make("/one");
	pid = runner("/one", "2-3", &ask);
	guest_check(!guest_write("groups/cg1/mode", "exclusive"), "exclusive",
		    "%s", guest_status());
	snprintf(text, sizeof(text), "%d", pid);
	guest_write("groups/cg1/tasks", text);
	guest_check(!strcmp(guest_status(), "ok"), "joins-without-a-word", "%s",
		    guest_status());
	snprintf(file, sizeof(file),
		 "ok, but %d was in the exclusive group cg1, and left it", pid);
	guest_check(!guest_write("groups/cg2/procs", text) &&
		    !strcmp(guest_status(), file), "leaves-exclusive-is-said",
		    "%s", guest_status());
	guest_write("groups/cg1/mode", "shareable");
	if (write(ask, "x", 1) != 1)
		guest_die("pipe");
	guest_check(succeeds(pid), "left-in-color", "not");
	gone("/one");
}

/* A container's "/" is its own cgroup. */
static void test_namespace(void)
{
	pid_t pid = fork();

	if (!pid) {
		enter("/other", 0);
		if (unshare(CLONE_NEWCGROUP))
			guest_die("unshare: %s", strerror(errno));
		_exit(bind_to("cg3", "everything-else") == -EINVAL &&
		      strstr(guest_status(), "namespace") ? 0 : 1);
	}
	guest_check(succeeds(pid) && !*guest_read("groups/cg3/cgroup"),
		    "namespace-refused", "%s: %s", guest_read("groups/cg3/cgroup"),
		    guest_status());
	bind_to("cg3", "\n");
}

int main(void)
{
	pid_t pid;
	int ask;

	if (access(CGROUPS "/cgroup.procs", F_OK))
		guest_die("no cgroup v2 on " CGROUPS);
	guest_group("cg1", "0-1");
	guest_group("cg2", "2-3");
	guest_group("cg3", "4-5");
	/* It need not be there yet. */
	guest_check(!bind_to("cg1", "/bound") &&
		    !strcmp(guest_read("groups/cg1/cgroup"), "/bound\n"),
		    "bind-before-mkdir", "%s", guest_status());
	refused("/bound", "is bound to group cg1");
	refused("bound", "is no path below");
	refused("/", "is no path below");
	refused("/a/../b", "is no path below");
	refused("/sys/fs/cgroup/bound", "own path is '/bound'");
	refused("/bound/cgroup.procs", "path is '/bound'");
	make("/bound");
	test_moves();
	guest_check(!gone("/bound/inner") && !gone("/bound/plain") &&
		    !gone("/bound"), "rmdir", "cgroups stay");
	guest_check(child_in("", "cg1", NULL), "nothing-there", "joined");
	make("/bound");
	guest_check(child_in("/bound", "cg1", "0-1"), "made-again", "not");
	/* What runs there already joins when it is bound. */
	make("/late");
	pid = runner("/late", "4-5", &ask);
	guest_check(!bind_to("cg3", "/late") && is_member("cg3", pid),
		    "runs-already", "%s", guest_status());
	if (write(ask, "x", 1) != 1)
		guest_die("pipe");
	guest_check(succeeds(pid), "runs-already-in-color", "not");
	guest_check(!bind_to("cg3", "\n") && !*guest_read("groups/cg3/cgroup"),
		    "unbound", "%s", guest_status());
	guest_check(child_in("/late", "cg3", NULL), "unbound-is-plain", "joined");
	bind_to("cg1", "\n");
	test_namespace();
	test_several();
	test_forks_meanwhile();
	test_leaves_exclusive();
	guest_ungroup("cg1");
	guest_check(child_in("/bound", "cg2", NULL), "group-gone", "joined");
	guest_check(guest_stat("groups/cg2/stats", "cgroup_refused") == 0,
		    "none-refused", "%s", guest_read("groups/cg2/stats"));
	guest_ungroup("cg2");
	guest_ungroup("cg3");
	gone("/bound");
	gone("/late");
	gone("/other");
	return guest_exit();
}
