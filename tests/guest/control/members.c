/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Membership: children inherit, whole processes join, long lists are read,
 * and groups removed while their tasks fork leave nobody behind.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY	1200	/* ids of 5 digits and a newline: over 4096 bytes */
#define ROUNDS	30
#define THREADS	100

static int lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void sleeper(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void check_long_list(void)
{
	static pid_t pid[MANY];
	int i, n;

	guest_group("long", NULL);
	if (guest_join("long"))
		guest_die("join: %s", guest_status());
	for (i = 0; i < MANY; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			guest_die("fork %d: %s", i, strerror(errno));
		if (!pid[i])
			sleeper();
	}
	n = lines(guest_read("groups/long/members"));
	guest_check(n == MANY + 1, "members-any-length", "%d lines of %d", n,
		    MANY + 1);
	n = guest_stat("groups/long/stats", "tasks");
	guest_check(n == MANY + 1, "members-counted", "%d of %d", n, MANY + 1);
	n = lines(guest_read("groups/long/tasks"));
	guest_check(n == MANY + 1 || (!n && strstr(guest_status(), "members")),
		    "tasks-never-cut", "%d lines, '%s'", n, guest_status());
	for (i = 0; i < MANY; i++)
		kill(pid[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	n = guest_stat("groups/long/stats", "tasks");
	guest_check(n == 1, "members-leave-at-exit", "%d left", n);
	guest_ungroup("long");
}

static void *thread_body(void *arg)
{
	pthread_barrier_wait(arg);
	pause();
	return NULL;
}

/* Binds itself to node 1. */
static void *bound_body(void *arg)
{
	unsigned long one = 2;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &one, 64))
		guest_die("set_mempolicy: %s", strerror(errno));
	return thread_body(arg);
}

/* A stopped process of so many threads, the last of which runs @last. */
static pid_t process_of(int threads, void *(*last)(void *))
{
	pthread_barrier_t up;
	pthread_t thread;
	pid_t pid = fork();
	int i;

	if (pid) {
		waitpid(pid, NULL, WUNTRACED);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_barrier_init(&up, NULL, threads);
	for (i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, i == threads - 1 ? last : thread_body, &up))
			guest_die("thread %d: %s", i, strerror(errno));
	pthread_barrier_wait(&up);
	kill(getpid(), SIGSTOP);
	pause();
	_exit(0);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* More than one walk over the threads finds. */
static void check_process(void)
{
	pid_t pid = process_of(THREADS, thread_body);
	int n;

	guest_group("whole", NULL);
	guest_writef("groups/whole/procs", "%d\n", pid);
	n = lines(guest_read("groups/whole/members"));
	guest_check(n == THREADS, "procs-moves-all-threads", "%d of %d, '%s'", n,
		    THREADS, guest_status());
	end(pid);
	guest_ungroup("whole");
}

/* One thread may not use the node of the colours: none moves. */
static void check_misfit(void)
{
	pid_t pid = process_of(3, bound_body);
	int got, n;

	guest_group("whole", "0");
	got = guest_writef("groups/whole/procs", "%d\n", pid);
	n = lines(guest_read("groups/whole/members"));
	guest_check(got && !n && strstr(guest_status(), "node"),
		    "procs-moves-all-or-none", "%d, %d members, '%s'", got, n,
		    guest_status());
	end(pid);
	guest_ungroup("whole");
}

/* Forks without end, every child a moment's. */
static void storm(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			if (!fork())
				_exit(0);
			_exit(0);
		}
		while (waitpid(-1, NULL, pid < 0 ? 0 : WNOHANG) > 0)
			;
	}
}

/* Groups come and go under tasks that fork; no number is given away twice. */
static void check_storm(void)
{
	pid_t pid[4];
	int round, i, bad = 0;

	for (i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i])
			storm();
	}
	for (round = 0; round < ROUNDS; round++) {
		guest_group("storm", round % 2 ? "0" : NULL);
		for (i = 0; i < 4; i++)
			bad += guest_writef("groups/storm/tasks", "%d\n",
					    pid[i]) != 0;
		bad += guest_stat("groups/storm/stats", "tasks") < 4;
		bad += guest_ungroup("storm") != 0;
		guest_group("next", NULL);
		bad += lines(guest_read("groups/next/members")) != 0;
		bad += guest_ungroup("next") != 0;
	}
	guest_check(!bad, "storm-of-forks", "%d things went wrong, '%s'", bad,
		    guest_status());
	for (i = 0; i < 4; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	for (i = 0; i < 100 && guest_stat("stats", "removed"); i++)
		usleep(100000);
	guest_check(guest_stat("stats", "removed") == 0,
		    "storm-groups-all-gone", "%lld left",
		    guest_stat("stats", "removed"));
}

/* A CPU that idles keeps the memory of the last process. The group goes all the same. */
static void idle_cpu_lets_go(const char *name, int cpu)
{
	int i, status;
	pid_t pid;

	guest_group("idle", "0");
	pid = fork();
	if (!pid) {
		guest_run_on(cpu);
		_exit(guest_join("idle") || fork() < 0);
	}
	guest_check(waitpid(pid, &status, 0) == pid && !status, "idle-cpu-ran",
		    "%d", status);
	guest_run_on(0);
	guest_ungroup("idle");
	for (i = 0; i < 100 && guest_stat("stats", "removed"); i++)
		usleep(100000);
	guest_check(!guest_stat("stats", "removed"), name, "%lld left",
		    guest_stat("stats", "removed"));
}

/* The kernel's work that belongs to no CPU asks the CPU, and may be on it. */
static void check_idle_cpu(void)
{
	static const char may_run[] = "/sys/devices/virtual/workqueue/cpumask";
	const int last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	FILE *f = fopen(may_run, "r");
	char all[64], one[16];

	if (!f || !fgets(all, sizeof(all), f))
		guest_die("%s: %s", may_run, strerror(errno));
	fclose(f);
	snprintf(one, sizeof(one), "%x", 1u << last);
	idle_cpu_lets_go("idle-cpu-lets-go", last);
	guest_set_kernel(may_run, one);
	idle_cpu_lets_go("idle-cpu-of-asker-lets-go", last);
	guest_set_kernel(may_run, all);
}

/* Are huge pages off for the caller's memory, as for any that is in colour? */
static bool stays(void)
{
	return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
}

static int leave(void *unused)
{
	(void)unused;
	return guest_join("sharing-own") || guest_ungroup("sharing-own");
}

static int join(void *unused)
{
	(void)unused;
	return guest_join("sharing") != 0;
}

/* @body in a process that shares the caller's memory. Return: its exit status. */
static int beside(int (*body)(void *), int flags)
{
	static char stack[256 << 10] __attribute__((aligned(16)));
	pid_t pid = clone(body, stack + sizeof(stack), flags | CLONE_VM | SIGCHLD, NULL);
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static int in_color_beside(void)
{
	if (guest_join("sharing") || !stays() || beside(leave, 0))
		return 2;
	return !stays();
}

static int plain_beside(void)
{
	if (stays() || beside(join, CLONE_VFORK))
		return 2;
	return stays();
}

static int in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		status = body();
		fflush(stdout);
		_exit(status);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Processes that share memory, as vfork() and clone(CLONE_VM) make them. */
static void check_shared_memory(void)
{
	int got;

	guest_group("sharing", "0");
	guest_group("sharing-own", "1");
	got = in_child(in_color_beside);
	guest_check(!got, "memory-stays-for-who-is-left", "%d, '%s'", got, guest_status());
	got = in_child(plain_beside);
	guest_check(!got, "vfork-child-marks-no-parent", "%d, '%s'", got, guest_status());
	guest_ungroup("sharing");
}

static bool is(bool off, const char *name)
{
	return guest_check(stays() == off, name, "huge pages are %s, '%s'",
			   off ? "on" : "off", guest_status());
}

/* Memory of a group without colours is that of stock Linux, until it has some. */
static int uncoloured(void)
{
	if (guest_join("plain"))
		return 1;
	is(false, "no-colours-no-change");
	guest_write("groups/plain/bank_set", "0");
	is(true, "colours-come");
	guest_write("groups/plain/bank_set", "\n");
	is(false, "colours-go");
	guest_write("groups/plain/auto", "1");
	is(true, "colours-come-by-themselves");
	return guest_exit();
}

static void check_uncoloured(void)
{
	int got;

	guest_group("plain", NULL);
	fflush(stdout);
	got = in_child(uncoloured);
	guest_check(!got, "plain-group", "%d, '%s'", got, guest_status());
	guest_ungroup("plain");
}

int main(void)
{
	check_idle_cpu();
	check_long_list();
	check_process();
	check_misfit();
	check_storm();
	check_uncoloured();
	check_shared_memory();
	return guest_exit();
}
