/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `stop user`: a CPU's tasks are held where they leave the kernel. Budgets hold
 * with several tasks of all kinds, and nobody waits for a lock that a stopped
 * task has in the kernel, as with `stop anywhere`.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <fcntl.h>

#define PERIOD_MS 100
#define LINES 10		/* faults in a period */

static void refused(void)
{
	guest_check(guest_write("guard/settings", "stop sometimes") == -EINVAL &&
		    strstr(guest_status(), "anywhere or user"),
		    "stop-refuses", "%s", guest_status());
	guest_check(strstr(guest_read("guard/settings"), "\nstop anywhere\n"),
		    "stop-is-anywhere", "%s", guest_read("guard/settings"));
}

static void begin(const char *stop)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "event page-faults\nperiod_us %d\nr_min 100000000\nstop %s",
		 PERIOD_MS * 1000, stop);
	settings(text);
	snprintf(text, sizeof(text), "%ld reclaim=0",
		 LINES * FAULT_BYTES * 1000 / PERIOD_MS);
	must_limit(1, text);
}

/* A task may end what it does in the kernel; here that is one fault. */
static void budgets(void)
{
	static const int policies[] = { SCHED_OTHER, SCHED_OTHER, SCHED_FIFO };
	struct worker w[3];
	struct usage u;
	int i, tries = GUARD_TRIES;
	long long lines;

	begin("user");
	for (i = 0; i < 3; i++)
		worker_start(&w[i], 1, policies[i], 0);
	do {
		u = usage_so_far(1, "used_bytes");
		sleep_ms(10 * PERIOD_MS);
		usage_since(&u, 1, "used_bytes");
	} while ((u.stops <= u.periods / 2 || u.periods < 5) && --tries);
	lines = u.used / FAULT_BYTES;
	guest_check(u.stops > u.periods / 2 && u.periods >= 5, "is-stopped",
		    "%lld stops in %lld periods", u.stops, u.periods);
	guest_check(lines <= (LINES + 3) * (u.periods + 1), "budget-holds",
		    "%lld faults in %lld periods of %d", lines, u.periods,
		    LINES);
	/* The real-time one first: it takes each budget whole. */
	while (i-- > 0)
		worker_stop(&w[i]);
	guard_reset();
}

/* ---- A lock of the kernel's ---- */

#define BYTES (256 * GUEST_PAGE)	/* 256 faults under the file's lock */

static atomic_bool quit;
static const char path[] = "/dev/shm/held";

/* Writes from memory that is not there: each page faults, under the lock. */
static void *write_much(void *arg)
{
	char *buf = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(path, O_WRONLY);

	madvise(buf, BYTES, MADV_NOHUGEPAGE);
	if (pin_self(1) || set_policy(SCHED_OTHER))
		return NULL;
	while (!quit) {
		if (pwrite(fd, buf, BYTES, 0) != (ssize_t)BYTES)
			break;
		madvise(buf, BYTES, MADV_DONTNEED);
	}
	munmap(buf, BYTES);
	close(fd);
	return arg;
}

/* The longest of some waits for the lock, in ms. */
static long long longest_wait(void)
{
	int fd = open(path, O_WRONLY), i;
	long long from, took, most = 0;

	for (i = 0; i < 3; i++) {
		sleep_ms(PERIOD_MS * 7 / 10);
		from = now_ns();
		if (pwrite(fd, "", 1, 0) != 1)
			guest_die("write to %s: %m", path);
		took = now_ns() - from;
		printf("# waited %lld ms\n", took / MS);
		fflush(stdout);
		if (took > most)
			most = took;
	}
	close(fd);
	return most / MS;
}

static long long wait_beside(const char *stop)
{
	pthread_t writer;
	long long most;

	quit = false;
	begin(stop);
	if (pthread_create(&writer, NULL, write_much, NULL))
		guest_die("pthread_create");
	sleep_ms(3 * PERIOD_MS);
	most = longest_wait();
	quit = true;
	limit(1, "off");
	pthread_join(writer, NULL);
	guard_reset();
	return most;
}

static void locks(void)
{
	long long anywhere, user;
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, BYTES))
		guest_die("%s: %m", path);
	close(fd);
	if (pin_self(2) || set_policy(SCHED_FIFO))
		guest_die("FIFO on CPU 2");
	anywhere = wait_beside("anywhere");
	user = wait_beside("user");
	printf("# longest wait for the lock: %lld ms stopped anywhere, %lld at user space; a period has %d\n",
	       anywhere, user, PERIOD_MS);
	/* Elsewhere a system call's stretch ends before its task is stopped. */
	if (!access("/sys/kernel/realtime", F_OK))
		guest_check(anywhere > 2 * PERIOD_MS,
			    "anywhere-waits-for-periods", "%lld ms", anywhere);
	guest_check(user < PERIOD_MS, "user-waits-for-no-period", "%lld ms",
		    user);
	set_policy(SCHED_OTHER);
	unlink(path);
}

/* ---- Switching between the two ---- */

static atomic_long rounds;

/* The end of a mapped file is work on the way to user space, where tasks are held. */
static void *go_out_often(void *arg)
{
	if (pin_self(1))
		return NULL;
	while (!quit) {
		int fd = open("/dev/zero", O_RDONLY);
		void *mem = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);

		close(fd);
		munmap(mem, 1);
		rounds++;
	}
	return arg;
}

/*
 * A CPU that stands still must not hold a task as well, though the hook is there for a
 * moment before and after `stop user`: nobody would wake the task. The clock stops the
 * CPU at any place, that of the hook too.
 */
static void switches(void)
{
	long long until;
	pthread_t of[2];
	long before;
	int i;

	quit = false;
	settings("event " RUNNING "\nperiod_us 500\nr_min 64000000000");
	must_limit(1, "32000000000 reclaim=0");	/* half of the time */
	for (i = 0; i < 2; i++)
		if (pthread_create(&of[i], NULL, go_out_often, NULL))
			guest_die("pthread_create");
	for (i = 0, until = now_ns() + 5000 * MS; now_ns() < until; i++) {
		settings("stop user");
		settings("stop anywhere");
	}
	printf("# %d times, %ld rounds\n", i, rounds);
	limit(1, "off");
	for (i = 0; i < 2; i++) {
		before = rounds;
		for (int k = 0; k < 500 && rounds < before + 10; k++)
			sleep_ms(20);
	}
	guest_check(rounds >= before + 10, "switches", "%ld rounds",
		    rounds - before);
	quit = true;
	for (i = 0; i < 2; i++)
		pthread_join(of[i], NULL);
	guard_reset();
}

int main(void)
{
	guard_reset();
	refused();
	budgets();
	switches();
	locks();
	guard_explain();
	return guest_exit();
}
