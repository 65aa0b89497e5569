/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads of one process have their own colours (TintMalloc III.B). A process whose main
 * thread has ended joins a group as any other.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 4
#define BYTES (4ul << 20)

static pthread_barrier_t all;

static void *body(void *arg)
{
	long me = (long)arg;
	char group[16], sets[16], name[32];
	struct guest_audit sum;
	void *own;
	int err;

	snprintf(group, sizeof(group), "thread%ld", me);
	snprintf(sets, sizeof(sets), "%ld", me);
	snprintf(name, sizeof(name), "threads-own-colors-%ld", me);
	err = guest_join(group);
	own = guest_map_anon(BYTES);
	pthread_barrier_wait(&all);
	guest_touch(own, BYTES);
	pthread_barrier_wait(&all);
	sum = guest_audit_range(own, BYTES, sets, NULL);
	guest_check(!err && sum.in == (long)(BYTES / GUEST_PAGE) && !sum.out,
		    name, "join %d, %ld in, %ld out (first %#lx)", err, sum.in,
		    sum.out, sum.first_out);
	return NULL;
}

/* ---- The main thread ends first ---- */

#define MOVED_SETS	"6-7"

struct orphan {
	pid_t tid;
	char *memory;
};

static int told[2], written[2];

static void *stays(void *arg)
{
	struct orphan self = { gettid(), guest_map_anon(BYTES) };
	unsigned long node0 = 1;
	struct guest_audit sum;
	char byte;

	(void)arg;
	if (write(told[1], &self, sizeof(self)) != sizeof(self) || read(written[0], &byte, 1) != 1)
		exit(1);
	sum = guest_audit_range(self.memory, BYTES, MOVED_SETS, NULL);
	guest_check(sum.in == (long)(BYTES / GUEST_PAGE) && !sum.out, "threads-written-by-others",
		    "%ld in, %ld out (first %#lx)", sum.in, sum.out, sum.first_out);
	fflush(stdout);
	write(told[1], &self, sizeof(self));
	if (read(written[0], &byte, 1) != 1 ||
	    syscall(SYS_set_mempolicy, MPOL_BIND, &node0, 64))
		exit(1);
	write(told[1], &self, sizeof(self));
	pause();
	return NULL;
}

/* Is the main thread of @pid a zombie? */
static bool ended(pid_t pid)
{
	char path[64], text[256] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		guest_die("%s", path);
	close(fd);
	return strstr(text, ") Z ");
}

/* The policy of its other threads holds for the memory of @orphan's process. */
static void policy_of_the_others(pid_t pid, struct orphan *orphan)
{
	const struct sol_map *map = guest_map();
	u32 last = map->n_bank_sets - 1;	/* of the last node */
	char sets[24];
	int err;

	snprintf(sets, sizeof(sets), "%u-%u", last - 1, last);
	guest_group("far", sets);
	guest_write("groups/far/exhaust", "spill");
	if (guest_writef("groups/far/procs", "%d", pid))
		guest_die("procs: %s", guest_status());
	write(written[1], "", 1);
	if (read(told[0], orphan, sizeof(*orphan)) != sizeof(*orphan))
		guest_die("the thread has no policy");
	err = guest_writef("groups/far/recolor", "%d", pid);
	guest_check(!err && !guest_stat("groups/far/recolor", "moved") &&
		    guest_stat("groups/far/recolor", "no_room"), "threads-of-an-ended-main-bound",
		    "returned %d: %lld moved", err, guest_stat("groups/far/recolor", "moved"));
}

static void main_thread_ends_first(void)
{
	static char data[BYTES];
	struct orphan orphan;
	pthread_t thread;
	char path[64];
	int err, fd;
	pid_t pid;

	guest_group("before", "4-5");
	guest_group("after", MOVED_SETS);
	if (pipe(told) || pipe(written))
		guest_die("pipe");
	pid = fork();
	if (!pid) {
		if (guest_join("before") || pthread_create(&thread, NULL, stays, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	/* A thread that ends shall not leave us waiting. */
	close(told[1]);
	close(written[0]);
	if (read(told[0], &orphan, sizeof(orphan)) != sizeof(orphan))
		guest_die("the thread said nothing");
	while (!ended(pid))
		usleep(1000);
	err = guest_writef("groups/after/procs", "%d", pid);
	guest_check(!err, "threads-of-an-ended-main-join", "returned %d, %s", err, guest_status());
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", pid, orphan.tid);
	fd = open(path, O_RDWR);
	memset(data, 1, sizeof(data));
	if (fd < 0 || pwrite(fd, data, BYTES, (off_t)orphan.memory) != (ssize_t)BYTES)
		guest_die("%s", path);
	close(fd);
	write(written[1], "", 1);
	if (read(told[0], &orphan, sizeof(orphan)) != sizeof(orphan))
		guest_die("the thread ended");
	err = guest_writef("groups/after/recolor", "%d", pid);
	guest_check(!err, "threads-of-an-ended-main-recolor", "returned %d, %s", err,
		    guest_status());
	policy_of_the_others(pid, &orphan);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	guest_ungroup("before");
	guest_ungroup("after");
	guest_ungroup("far");
}

int main(void)
{
	pthread_t thread[N_THREADS];
	char group[16], sets[16];
	struct guest_audit sum;
	void *mine;
	long i;

	pthread_barrier_init(&all, NULL, N_THREADS);
	guest_map(); /* static state of the library: fill before threads */
	for (i = 0; i < N_THREADS; i++) {
		snprintf(group, sizeof(group), "thread%ld", i);
		snprintf(sets, sizeof(sets), "%ld", i);
		guest_group(group, sets);
	}
	for (i = 0; i < N_THREADS; i++)
		if (pthread_create(&thread[i], NULL, body, (void *)i))
			guest_die("pthread_create");
	for (i = 0; i < N_THREADS; i++)
		pthread_join(thread[i], NULL);

	/* The main thread joined none: its pages come from anywhere. */
	mine = guest_map_anon(BYTES);
	guest_touch(mine, BYTES);
	/* Supply may move some out of the groups' colours: they are nowhere meanwhile. */
	for (i = 0; i < 100; i++) {
		sum = guest_audit_range(mine, BYTES, NULL, NULL);
		if (!sum.swapped)
			break;
		usleep(10000);
	}
	guest_check(sum.present == (long)(BYTES / GUEST_PAGE),
		    "threads-main-uncolored", "%ld present, %ld on the move",
		    sum.present, sum.swapped);
	main_thread_ends_first();
	return guest_exit();
}
