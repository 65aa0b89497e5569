/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What docs/reference/security.md says: who is not root reads nothing of where memory
 * lies, can't pass for a program that a rule names, and with mmap_abi=2 takes a
 * few groups and not all.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../kernel/uapi/soloist.h"

#define NOBODY		65534
#define USER_GROUPS	64

static void secret(const char *path)
{
	char full[256];
	int fd;

	snprintf(full, sizeof(full), GUEST_ROOT "/%s", path);
	fd = open(full, O_RDONLY);
	guest_check(fd < 0 && errno == EACCES, path, "opened: %s",
		    fd < 0 ? strerror(errno) : "by anyone");
	if (fd >= 0)
		close(fd);
}

static void test_secrets(void)
{
	guest_group("sec", "0-1");
	guest_write("groups/sec/bank_set", "no list");
	if (seteuid(NOBODY))
		guest_die("seteuid");
	secret("map");
	secret("lists");
	secret("implicit");
	secret("groups/sec/members");
	secret("groups/sec/bank_set");
	secret("groups/sec/dram_bank");
	secret("groups/sec/llc_color");
	secret("groups/sec/node");
	secret("groups/sec/occupancy");
	secret("groups/sec/occupancy_all");
	secret("groups/sec/evict");
	secret("groups/sec/recolor");
	secret("groups/sec/tasks");
	secret("groups/sec/cgroup");
	/* Or what a call of this user was told. */
	guest_check(!strstr(guest_read("last_cmd_status"), "bank_set"),
		    "last-refusal-of-others", "%s",
		    guest_read("last_cmd_status"));
	if (seteuid(0))
		guest_die("seteuid");
	guest_ungroup("sec");
}

/* ---- rules ---- */

static char here[256];

static long long matched(void)
{
	return guest_stat("rules/sec/stats", "matched");
}

/* How often the rule matches when a child does @how, then executes @path. */
static long long matches(void (*how)(void), const char *path)
{
	long long before = matched();
	pid_t pid = fork();

	if (!pid) {
		if (how)
			how();
		execl(path, path, NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return matched() - before;
}

static void other_mounts(void)
{
	char good[300], evil[300];

	snprintf(good, sizeof(good), "%s/bin/good", here);
	snprintf(evil, sizeof(evil), "%s/evil", here);
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(evil, good, NULL, MS_BIND, NULL))
		_exit(1);
}

/* The jail has a file of the same path within it. */
static void other_root(void)
{
	if (chroot("jail") || chdir("/"))
		_exit(1);
}

static void test_rules(void)
{
	char path[600], command[2000];

	if (!getcwd(here, sizeof(here)))
		guest_die("getcwd");
	snprintf(command, sizeof(command),
		 "mkdir bin && cp /bin/true bin/good && cp /bin/true evil && mkdir -p jail%s/bin && cp /bin/true jail%s/bin/good && ln -s good bin/link",
		 here, here);
	if (system(command))
		guest_die("%s", command);
	mkdir(GUEST_ROOT "/rules/sec", 0755);
	snprintf(path, sizeof(path), "%s/bin/*", here);
	if (guest_write("rules/sec/uid", "any") ||
	    guest_write("rules/sec/path", path) ||
	    guest_write("rules/sec/colors", "1") ||
	    guest_write("rules/sec/enabled", "1"))
		guest_die("rule: %s", guest_status());
	snprintf(path, sizeof(path), "%s/bin/good", here);
	guest_check(matches(NULL, path) == 1, "rule-matches", "not");
	guest_check(matches(NULL, "bin/good") == 1, "rule-relative", "not");
	guest_check(matches(other_mounts, path) == 0,
		    "rule-not-forged-by-mounts", "matched");
	guest_check(matches(other_root, path) == 0, "rule-not-forged-by-chroot",
		    "matched");
	snprintf(path, sizeof(path), "%s/bin/../evil", here);
	guest_check(matches(NULL, path) == 0, "rule-not-forged-by-dots",
		    "matched");
	snprintf(path, sizeof(path), "%s/bin/link", here);
	guest_check(matches(NULL, path) == 1, "rule-link", "not");
	rmdir(GUEST_ROOT "/rules/sec");
}

/* ---- mmap_abi=2 ---- */

static void load(const char *param)
{
	char command[600];
	char *map = strdup(guest_read("map"));

	snprintf(command, sizeof(command), "rmmod soloist && insmod %s %s",
		 getenv("MODULE"), param);
	if (system(command) || guest_write("map", map))
		guest_die("%s: %s", command, guest_status());
	free(map);
}

static int set_color(int color)
{
	long r = syscall(SYS_mmap, (unsigned long)(SET_MEM_COLOR | color), 0ul,
			 (unsigned long)COLOR_ALLOC, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	return r < 0 ? errno : 0;
}

/* One of many that ask at once: tells whether it got a colour, stays until the end. */
static void asks(int tell, int begin, int wait)
{
	char c;

	if (setuid(NOBODY) || read(begin, &c, 1) < 0)
		_exit(1);
	c = set_color(0) ? 'n' : 'y';
	if (write(tell, &c, 1) != 1 || read(wait, &c, 1) < 0)
		_exit(1);
	_exit(0);
}

static void test_limit(void)
{
	int tell[2], begin[2], wait[2], yes = 0, i, n = 2 * USER_GROUPS;
	char c;

	load("mmap_abi=2");
	if (pipe(tell) || pipe(begin) || pipe(wait))
		guest_die("pipe");
	for (i = 0; i < n; i++) {
		if (!fork()) {
			close(begin[1]);
			close(wait[1]);
			asks(tell[1], begin[0], wait[0]);
		}
	}
	close(begin[1]);
	for (i = 0; i < n; i++)
		if (read(tell[0], &c, 1) == 1 && c == 'y')
			yes++;
	guest_check(yes == USER_GROUPS, "mmap-groups-of-a-user", "%d of %d", yes,
		    n);
	guest_check(!set_color(0), "mmap-root-has-no-limit", "%s",
		    guest_status());
	close(wait[1]);
	while (wait[0] >= 0 && waitpid(-1, NULL, 0) > 0)
		;
}

static int register_user(void)
{
	long r = syscall(SYS_mmap, (unsigned long)COLOR_ON | 1, GUEST_PAGE,
			 (unsigned long)COLOR_ALLOC, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	return r < 0 ? errno : 0;
}

static bool registers_as(uid_t uid)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(setuid(uid) ? 2 : register_user() ? 1 : 0);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		guest_die("as user %u: status %#x", uid, status);
	return !WEXITSTATUS(status);
}

/* In a child of NOBODY: how many of its subordinate ids (subuid(5)) it registers. */
static int registers_all(void)
{
	int yes = 0, i;

	if (setuid(NOBODY) || unshare(CLONE_NEWUSER) || raise(SIGSTOP))
		_exit(255);
	for (i = 1; i <= USER_GROUPS + 6; i++)
		yes += registers_as(i);
	return yes;
}

/* One person with many ids leaves places to others. */
static void test_registered(void)
{
	char path[64];
	int status, fd;
	pid_t pid;

	load("mmap_abi=2");
	pid = fork();
	if (!pid)
		_exit(registers_all());
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		guest_die("a user namespace: status %#x", status);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0 65534 1\n1 100000 100\n", 24) != 24)
		guest_die("%s: %s", path, strerror(errno));
	close(fd);
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	guest_check(WIFEXITED(status) && WEXITSTATUS(status) == USER_GROUPS,
		    "mmap-registers-few-of-one", "status %#x", status);
	guest_check(registers_as(1000), "mmap-registers-another", "%s",
		    guest_status());
}

int main(void)
{
	pid_t pid;

	test_secrets();
	test_rules();
	/* In a child, so that its own colours go with it. */
	fflush(stdout);
	pid = fork();
	if (!pid) {
		test_limit();
		exit(guest_exit());
	}
	waitpid(pid, NULL, 0);
	test_registered();
	load("mmap_abi=1");
	return guest_exit();
}
