/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the tests of the guard share: threads that make traffic on one CPU, and
 * the numbers of guard/. Traffic is page faults, or the time that a CPU runs:
 * guests under emulation have no counters of memory traffic.
 */
#ifndef GUARD_TEST_H
#define GUARD_TEST_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../lib/guest.h"

#define MS 1000000ll

/*
 * An event that goes on as long as a CPU is there, 1000 million times a second: on arm64
 * the cycles of the processor's own counter, whose overflow interrupts (QEMU counts
 * virtual nanoseconds). QEMU's x86 has no counter; the kernel's clock stands in for it.
 */
#ifdef __aarch64__
#define RUNNING "cpu-cycles"
#else
#define RUNNING "cpu-clock"
#endif

/*
 * How often to look for traffic that does come. A CPU that was stopped has other
 * threads' work to make up for first (PREEMPT_RT: RCU's, interrupts), and an
 * emulator may let other CPUs go first for long: seconds at times. What must
 * never be is tested at the first look.
 */
#define GUARD_TRIES 24

static inline void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* ---- guard/ ---- */

static inline void settings(const char *text)
{
	if (guest_write("guard/settings", text))
		guest_die("guard/settings %s: %s", text, guest_status());
}

static inline int limit(int cpu, const char *value)
{
	char path[64];

	snprintf(path, sizeof(path), "guard/cpu%d/bandwidth", cpu);
	return guest_write(path, value);
}

/* A kernel without schedutil (arm64's cloud) can only hold tasks where they leave it. */
static inline void must_limit(int cpu, const char *value)
{
	int err = limit(cpu, value);

	if (err && strstr(guest_status(), "SCHEDUTIL")) {
		printf("# stop user: %s\n", guest_status());
		if (guest_write("guard/settings", "stop user"))
			guest_die("stop user: %s", guest_status());
		err = limit(cpu, value);
	}
	if (err)
		guest_die("cpu%d %s: %s", cpu, value, guest_status());
}

/* All in one reading, as of one moment. */
static inline const char *stats_of(int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "guard/cpu%d/stats", cpu);
	return guest_read(path);
}

static inline long long stat_of(int cpu, const char *key)
{
	return guest_stat_in(stats_of(cpu), key);
}

static inline long long guard_stat(const char *key)
{
	return guest_stat("guard/stats", key);
}

/* What a CPU did in some time. */
struct usage {
	long long used;		/* bytes */
	long long periods;
	long long stops;	/* periods whose whole budget was used */
};

/* @key: used_bytes or used_write_bytes. */
static inline struct usage usage_so_far(int cpu, const char *key)
{
	const char *text = stats_of(cpu);

	return (struct usage){
		.used = guest_stat_in(text, key),
		.periods = guest_stat_in(text, "periods"),
		.stops = guest_stat_in(text, "stops"),
	};
}

static inline void usage_since(struct usage *u, int cpu, const char *key)
{
	struct usage now = usage_so_far(cpu, key);

	u->used = now.used - u->used;
	u->periods = now.periods - u->periods;
	u->stops = now.stops - u->stops;
}

/* As at load: nobody has a limit. */
static inline void guard_reset(void)
{
	for (int cpu = 0; cpu < 4; cpu++)
		limit(cpu, "off");
	guest_write("guard/settings",
		    "r_min 0\nevent page-faults\nwrite_event none\nwrite_r_min 0\npeak 0\nq_min 0\nperiod_us 1000\newma 192\nsharing none\ncount_kernel 1\nper_task 0\nby_bank 0\nstop anywhere");
}

/* What all threads of ours wait for, and who else ran; after a failure. */
static inline void guard_explain(void)
{
	if (!guest_exit())
		return;
	fflush(stdout);
	if (system("for t in /proc/$PPID/task/*; do cat $t/stat $t/stack; done; cat /proc/stat /sys/kernel/config/soloist/guard/cpu[0-3]/stats | grep -v ^intr; ps -eLo pid,cls,rtprio,psr,stat,time,wchan:20,comm --sort=-time | head -n 20") < 0)
		printf("# no shell\n");
}

/* ---- threads on a CPU ---- */

struct worker {
	pthread_t thread;
	int cpu;
	int policy;		/* SCHED_OTHER, SCHED_FIFO or 6: deadline */
	long faults_per_ms;	/* 0: as fast as it can; < 0: only spins */
	atomic_long done;	/* faults, or turns */
	atomic_bool quit;
	int err;		/* of setting the policy */
};

struct attr {
	unsigned int size, policy;
	unsigned long long flags;
	int nice;
	unsigned int priority;
	unsigned long long runtime, deadline, period;
};

static inline int set_policy(int policy)
{
	struct attr a = { .size = sizeof(a), .policy = policy,
			  .nice = getpriority(PRIO_PROCESS, 0) };

	if (policy == SCHED_FIFO || policy == SCHED_RR)
		a.priority = 50;
	if (policy == 6) {
		a.runtime = 30 * MS;
		a.deadline = 40 * MS;
		a.period = 100 * MS;
	}
	return syscall(SYS_sched_setattr, 0, &a, 0) ? errno : 0;
}

/* What a page fault counts for, whatever the size of a page. */
#define FAULT_BYTES 4096l

static inline int pin_self(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static inline void *work(void *arg)
{
	struct worker *w = arg;
	const size_t pages = 256;
	volatile char *mem = mmap(NULL, pages * GUEST_PAGE,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long long from;
	size_t at = pages;

	madvise((void *)mem, pages * GUEST_PAGE, MADV_NOHUGEPAGE);
	if (pin_self(w->cpu) || (w->err = set_policy(w->policy)))
		return NULL;
	from = now_ns();
	while (!w->quit) {
		if (w->faults_per_ms < 0) {
			w->done++;
			continue;
		}
		if (w->faults_per_ms &&
		    w->done >= (now_ns() - from) / MS * w->faults_per_ms) {
			sleep_ms(1);
			continue;
		}
		if (at == pages) {
			madvise((void *)mem, pages * GUEST_PAGE, MADV_DONTNEED);
			at = 0;
		}
		mem[at++ * GUEST_PAGE] = 1;
		w->done++;
	}
	munmap((void *)mem, pages * GUEST_PAGE);
	return NULL;
}

static inline void worker_start(struct worker *w, int cpu, int policy,
				long faults_per_ms)
{
	memset(w, 0, sizeof(*w));
	w->cpu = cpu;
	w->policy = policy;
	w->faults_per_ms = faults_per_ms;
	if (pthread_create(&w->thread, NULL, work, w))
		guest_die("pthread_create");
}

/* Until it makes traffic; an emulator may let other CPUs go first for long. */
static inline void worker_await(struct worker *w)
{
	long from = w->done;

	for (int i = 0; i < 1000 && w->done < from + 100; i++)
		sleep_ms(10);
}

static inline long worker_stop(struct worker *w)
{
	w->quit = true;
	pthread_join(w->thread, NULL);
	return w->done;
}

#endif /* GUARD_TEST_H */
