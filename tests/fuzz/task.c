/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Acts that make and end tasks: fork, exec, threads, one that writes another. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "../../kernel/uapi/soloist.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES	(256ul << 10)

static bool ended(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid &&
	       WIFEXITED(status) && !WEXITSTATUS(status);
}

/* It ends with its worker, also if the worker was killed before it could ask for that. */
static pid_t child(void)
{
	const pid_t worker = getpid();
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != worker)
			_exit(1);
	}
	return pid;
}

static bool touch_new(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	munmap(p, bytes);
	return true;
}

static bool join_by(pid_t tid, unsigned int group)
{
	char path[64];

	snprintf(path, sizeof(path), FUZZ_ROOT "/groups/fuzz%u/tasks", group);
	return !putf(path, "%d", tid);
}

/* A child writes what it shares with its parent, and perhaps has one itself. */
static bool forked(struct draw *d)
{
	bool again = draw_one_in(d, 4), other = draw_one_in(d, 4);
	unsigned int group = draw(d, 5);
	pid_t pid = child();

	if (pid)
		return ended(pid);
	if (other)
		join_by(0, group);
	memory_touch(d);
	if (again) {
		pid = child();
		memory_touch(d);
		if (!pid)
			_exit(0);
		ended(pid);
	}
	_exit(!touch_new(BYTES));
}

/* The program goes on as `fuzz exit`; some as another user. */
static bool executed(struct draw *d)
{
	static const char *const paths[] = {
		FUZZ_DIR "/bin/fuzz", FUZZ_DIR "/bin/other1", FUZZ_DIR "/script",
		"/bin/true", "bin/fuzz", FUZZ_DIR "/none",
	};
	const char *path = paths[draw(d, 6)];
	bool user = draw_one_in(d, 3), fast = draw_one_in(d, 3);
	pid_t pid;

	pid = fast && !user ? vfork() : child();
	if (pid)
		return ended(pid);
	if (user && (setgid(1000) || setuid(1000)))
		_exit(1);
	execl(path, path, "exit", NULL);
	_exit(1);
}

/* The papers' calls by one who is not root. */
static bool user_call(struct draw *d)
{
	unsigned long arg = (1 + draw(d, 6)) << COLOR_MODE_SHIFT | draw(d, 32);
	unsigned int times = 1 + draw(d, 80);
	pid_t pid = child();
	bool done = false;

	if (pid)
		return ended(pid);
	if (setgid(1001) || setuid(1001))
		_exit(1);
	while (times--)
		done |= mmap((void *)arg, 0, PROT_READ | COLOR_ALLOC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
	touch_new(BYTES);
	_exit(!done);
}

struct thread {
	pthread_t id;
	struct draw draw;
};

static void *thread_main(void *arg)
{
	struct draw *d = &((struct thread *)arg)->draw;
	unsigned int times = 1 + draw(d, 4);

	while (times--) {
		if (draw_one_in(d, 3))
			join_by(gettid(), draw(d, 5));
		if (draw_one_in(d, 3))
			mmap((void *)(unsigned long)(SET_MEM_COLOR | draw(d, 32)),
			     0, PROT_READ | COLOR_ALLOC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		touch_new(BYTES);
	}
	return NULL;
}

static bool threads(struct draw *d)
{
	struct thread threads[4];
	unsigned int i, n = 1 + draw(d, 4), made = 0;

	for (i = 0; i < n; i++) {
		threads[made].draw.state = d->state + i;
		made += !pthread_create(&threads[made].id, NULL, thread_main,
					&threads[made]);
	}
	for (i = 0; i < made; i++)
		pthread_join(threads[i].id, NULL);
	return made == n;
}

/* One task's memory is written by another's fault. */
static bool write_other(struct draw *d)
{
	static char page[8192];
	unsigned int group = draw(d, 5), pages = 1 + draw(d, 64);
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool done = true;
	pid_t pid;

	if (p == MAP_FAILED)
		return false;
	pid = child();
	if (!pid) {
		join_by(0, group);
		pause();
		_exit(0);
	}
	for (unsigned int i = 0; i < pages && pid > 0; i++) {
		struct iovec from = { page, 8 }, to = { p + i * 4096, 8 };

		done &= process_vm_writev(pid, &from, 1, &to, 1, 0) == 8;
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	munmap(p, BYTES);
	return done && pid > 0;
}

/* A crowd that the machine has to end together. */
static bool crowd(struct draw *d)
{
	unsigned int i, n = 2 + draw(d, 14);
	pid_t pids[16];
	bool all = true;

	for (i = 0; i < n; i++) {
		pids[i] = child();
		if (!pids[i]) {
			touch_new(BYTES / 4);
			_exit(0);
		}
	}
	for (i = 0; i < n; i++)
		all &= ended(pids[i]);
	return all;
}

/*
 * Always on CPU 0 too, which stays: one whose CPUs are all off makes the kernel
 * itself warn when it moves to the root cgroup (cpuset_attach_task(), 6.12 and
 * 7.3, without the module too).
 */
static bool on_cpu(struct draw *d)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (draw(d, 3))
		CPU_SET(draw(d, FUZZ_CPUS), &set);
	else
		for (int cpu = 0; cpu < FUZZ_CPUS; cpu++)
			CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

#define PATIENCE_S	30

static volatile size_t touched;

/* Slow is no fault, on a full machine; that there is no page and no end is. */
static void look_at_hog(int signal)
{
	static size_t last;
	static int looks;

	(void)signal;
	if (touched == last) {
		static const char text[] = "FAIL livelock: a hog gets no page and no signal\n";

		fuzz->livelocks++;
		if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
			_exit(2);
	}
	last = touched;
	if (++looks == 3)
		_exit(1);
	alarm(PATIENCE_S);
}

/* Much of the machine's memory at once; this one goes first. */
static bool hog(struct draw *d)
{
	size_t bytes = (100ul + draw(d, 1500)) << 20;
	bool grouped = draw_one_in(d, 3);
	unsigned int group = draw(d, 5);
	volatile char *p;
	pid_t pid;

	pid = child();
	if (pid)
		return ended(pid);
	put("/proc/self/oom_score_adj", "1000", 0);
	if (grouped)
		join_by(0, group);
	signal(SIGALRM, look_at_hog);
	alarm(PATIENCE_S);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (touched = 0; p != MAP_FAILED && touched < bytes; touched += 4096)
		p[touched] = 1;
	_exit(p == MAP_FAILED);
}

const struct act task_acts[] = {
	{ "fork", 12, forked },
	{ "exec", 12, executed },
	{ "user-call", 4, user_call },
	{ "threads", 8, threads },
	{ "write-other", 5, write_other },
	{ "crowd", 3, crowd },
	{ "affinity", 4, on_cpu },
	{ "hog", 1, hog },
	{ NULL, 0, NULL },
};
