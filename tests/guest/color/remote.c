/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pages of a process that another task fills: a fork that copies pinned pages, a debugger,
 * a userfaultfd's server, writes from outside. They are in the colours of the process, not
 * of the one who fills them.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGES	64ul
#define BYTES	(PAGES * GUEST_PAGE)

static void check_in(const char *name, pid_t pid, const char *p, int set)
{
	size_t i, in = 0, there = 0;

	for (i = 0; i < PAGES; i++) {
		u64 pfn = guest_pfn(pid, p + i * GUEST_PAGE);

		there += pfn != 0;
		in += pfn && guest_set_of(pfn) == set;
	}
	guest_check(there == PAGES && in == PAGES, name, "%zu there, %zu in colour",
		    there, in);
}

/* Of long term, as io_uring's registered buffers are. */
static bool pin(char *p)
{
	struct iovec buffer = { p, BYTES };
	char params[120] = "";
	int ring = syscall(SYS_io_uring_setup, 1, params);

	return ring >= 0 && !syscall(SYS_io_uring_register, ring, 0, &buffer, 1);
}

/* What is pinned can't be shared with a child: fork copies it. */
static void forked(void)
{
	char *p = guest_map_anon(BYTES);
	size_t i, copied = 0;
	u64 was[PAGES];
	int status;
	pid_t pid;

	guest_touch(p, BYTES);
	if (!pin(p)) {
		guest_skip("remote-fork-of-pinned", strerror(errno));
		return;
	}
	for (i = 0; i < PAGES; i++)
		was[i] = guest_pfn(0, p + i * GUEST_PAGE);
	pid = fork();
	if (!pid) {
		for (i = 0; i < PAGES; i++)
			copied += guest_pfn(0, p + i * GUEST_PAGE) != was[i];
		guest_check(copied == PAGES, "remote-fork-copies", "%zu", copied);
		check_in("remote-fork-of-pinned", 0, p, 0);
		_exit(guest_exit());
	}
	waitpid(pid, &status, 0);
	check_in("remote-fork-of-pinned-parent", 0, p, 0);
}

/* A member of group "mine" that waits with untouched memory at *@p. */
static pid_t waits(char **p)
{
	pid_t pid;

	*p = guest_map_anon(BYTES);
	pid = fork();
	if (!pid) {
		if (guest_join("mine"))
			_exit(1);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		pause();
		_exit(0);
	}
	waitpid(pid, NULL, WUNTRACED);
	return pid;
}

static void ends(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void written(void)
{
	static char text[1 << 20];
	struct iovec here = { text, BYTES }, there;
	char *p;
	pid_t pid = waits(&p);
	ssize_t n;

	there = (struct iovec){ p, BYTES };
	n = process_vm_writev(pid, &here, 1, &there, 1, 0);
	guest_check(n == (ssize_t)BYTES, "remote-writev", "%zd", n);
	check_in("remote-writev-in-color", pid, p, 0);
	ends(pid);
}

static void read_from(void)
{
	static char text[1 << 20];
	struct iovec here = { text, BYTES }, there;
	char *p;
	pid_t pid = waits(&p);

	there = (struct iovec){ p, BYTES };
	process_vm_readv(pid, &here, 1, &there, 1, 0);
	check_in("remote-readv-in-color", pid, p, 0);
	ends(pid);
}

static void poked(void)
{
	char *p;
	pid_t pid = waits(&p);
	size_t i;

	for (i = 0; i < PAGES; i++)
		ptrace(PTRACE_POKEDATA, pid, p + i * GUEST_PAGE, 1);
	check_in("remote-poke-in-color", pid, p, 0);
	ends(pid);
}

#define TABLES	8	/* page tables, one for each GUEST_HUGE of memory */

/* What the kernel builds for a debugger's fault are the debugger's, who can tell by the count. */
static void tables_built(void)
{
	char *p = guest_map_anon(TABLES * GUEST_HUGE), byte = 1;
	long long before = guest_stat("groups/other/stats", "page_tables");
	struct iovec here = { &byte, 1 }, there;
	long long after;
	long written = 0;
	int i;
	pid_t pid = fork();

	if (!pid) {
		if (guest_join("mine"))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, NULL, WUNTRACED);
	for (i = 0; i < TABLES; i++) {
		there = (struct iovec){ p + i * GUEST_HUGE, 1 };
		written += process_vm_writev(pid, &here, 1, &there, 1, 0) == 1;
	}
	after = guest_stat("groups/other/stats", "page_tables");
	guest_check(written == TABLES && after - before >= TABLES, "remote-tables-counted",
		    "%ld written, %lld tables", written, after - before);
	ends(pid);
}

/* In a process of its own, which joins @group (NULL: none), and is waited for. */
static void in_group(const char *group, void (*test)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (group && guest_join(group))
			guest_die("join: %s", guest_status());
		test();
		_exit(guest_exit());
	}
	waitpid(pid, &status, 0);
	guest_check(!status, "remote-status", "%#x", status);
}

/* The server, in group @by, fills memory of a member of group "mine". */
static void served(const char *name, const char *by)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg;
	char *p = guest_map_anon(BYTES), *from = guest_map_anon(BYTES), c;
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC), told[2], status;
	pid_t pid;

	guest_touch(from, BYTES);
	reg = (struct uffdio_register){
		.range = { (unsigned long)p, BYTES },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &reg) || pipe(told)) {
		guest_skip(name, strerror(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		struct uffdio_copy copy = {
			.dst = (unsigned long)p, .src = (unsigned long)from,
			.len = BYTES,
		};

		if ((by && guest_join(by)) || read(told[0], &c, 1) != 1)
			_exit(2);
		_exit(ioctl(uffd, UFFDIO_COPY, &copy) ? 1 : 0);
	}
	if (guest_join("mine") || write(told[1], "", 1) != 1)
		guest_die("join: %s", guest_status());
	waitpid(pid, &status, 0);
	guest_check(!status, name, "status %#x", status);
	check_in(name, 0, p, 0);
}

static void served_by_stranger(void)
{
	served("remote-served-by-stranger", NULL);
}

static void served_by_other(void)
{
	served("remote-served-by-other", "other");
}

/* Text of the page cache becomes a copy; a member that had it before has one already. */
static void text_poked(void)
{
	char *p;
	pid_t pid = waits(&p);
	long word = ptrace(PTRACE_PEEKDATA, pid, (void *)poked, 0);

	guest_check(!ptrace(PTRACE_POKEDATA, pid, (void *)poked, word) &&
		    guest_set_of(guest_pfn(pid, (void *)poked)) == 0,
		    "remote-poke-text", "set %d",
		    guest_set_of(guest_pfn(pid, (void *)poked)));
	ends(pid);
}

/* exec: arguments lie in the new address space before that is current. */
static void executed(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		static char *args[66];
		int i;

		if (guest_join("mine"))
			_exit(2);
		args[0] = "sh";
		args[1] = "-c";
		args[2] = "kill -STOP $$; exit 0";
		for (i = 3; i < 65; i++) {
			args[i] = malloc(8192);
			memset(args[i], 'x', 8191);
			args[i][8191] = 0;
		}
		execv("/bin/sh", args);
		_exit(3);
	}
	waitpid(pid, &status, WUNTRACED);
	guest_check_all_in("remote-exec-arguments", pid, "0", NULL);
	kill(pid, SIGCONT);
	ends(pid);
}

int main(void)
{
	int tries;

	guest_group("mine", "0");
	guest_group("other", "5");
	in_group("mine", forked);
	in_group(NULL, written);
	in_group(NULL, read_from);
	in_group(NULL, poked);
	in_group(NULL, text_poked);
	in_group("other", written);
	in_group("other", read_from);
	in_group("other", poked);
	in_group("other", tables_built);
	in_group(NULL, served_by_stranger);
	in_group(NULL, served_by_other);
	in_group(NULL, executed);
	guest_ungroup("other");
	for (tries = 0; tries < 100 && guest_stat("stats", "removed"); tries++)
		usleep(100000);
	guest_check(!guest_stat("stats", "removed"), "remote-tables-come-back",
		    "the debugger's group has pages in use");
	return guest_exit();
}
