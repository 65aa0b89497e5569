/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes that fill memory, wait while they are looked at, and then check it. */
#ifndef SERVANT_H
#define SERVANT_H

#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that has filled its memory, and waits for its end. */
struct servant {
	pid_t pid;
	int ready[2];
	int end[2];
	char *at;	/* its memory */
	size_t bytes;
};

/* What it does with its memory. */
enum {
	SERVE_LOCKED = 1,	/* mlock() */
	SERVE_HUGE = 2,		/* huge pages, if it gets some */
	SERVE_BUSY = 4,		/* writes to it all the time, and checks it */
	SERVE_FIFO = 8,		/* with real-time priority, on CPU 1 */
	SERVE_SWAPPED = 16,	/* it is swapped, until servant_poke() */
	SERVE_BOUND = 32,	/* its memory must be of node 0, by the task's policy */
	SERVE_MBOUND = 64,	/* the same, by a policy of the mapping */
	SERVE_LEAVING = 128,	/* it stops filling when node 0 is nearly full */
};

#define NODE0	"/sys/devices/system/node/node0/meminfo"

/*
 * Ten MiB above the lowest watermark: a task that asks for a page gets it, one that asks for
 * many does not. The kernel raises the watermark for a while after it broke up a block
 * (vm.watermark_boost_factor), by 48 MiB here.
 */
static inline bool node0_nearly_full(void)
{
	long long free = kernel_number(NODE0, "Node 0 MemFree");

	return free < 256 << 10 && free <= kernel_zones("min", 0) + (10 << 10);
}

static volatile sig_atomic_t servant_told;

static void servant_end(int sig)
{
	(void)sig;
	servant_told = 1;
}

static volatile sig_atomic_t servant_used;

static void servant_poked(int sig)
{
	(void)sig;
	servant_used = 1;
}

/* Each page knows its number. Return: all do. */
static bool servant_check(const char *p, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i += GUEST_PAGE)
		if (*(const volatile size_t *)(p + i) != i + 1)
			return false;
	return true;
}

static inline void be_urgent(void)
{
	struct sched_param param = { .sched_priority = 10 };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(1, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    sched_setscheduler(0, SCHED_FIFO, &param))
		_exit(1);
}

static inline void be_bound(void)
{
	unsigned long nodes = 1;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 64))
		_exit(1);
}

static inline void be_mbound(void *at, size_t bytes)
{
	unsigned long nodes = 1;

	if (syscall(SYS_mbind, at, bytes, MPOL_BIND, &nodes, 64, 0))
		_exit(1);
}

static void servant_run(struct servant *s, int how)
{
	bool good = true;
	size_t i;
	char c;

	if (how & SERVE_BOUND)
		be_bound();
	s->at = guest_map_anon(s->bytes + GUEST_HUGE);
	s->at = (char *)(((unsigned long)s->at + GUEST_HUGE - 1) &
			 -GUEST_HUGE);
	if (how & SERVE_MBOUND)
		be_mbound(s->at, s->bytes);
	madvise(s->at, s->bytes, how & SERVE_HUGE ? MADV_HUGEPAGE :
						    MADV_NOHUGEPAGE);
	for (i = 0; i < s->bytes; i += GUEST_PAGE) {
		if (how & SERVE_LEAVING && !(i % (1 << 20)) && node0_nearly_full())
			s->bytes = i;
		else
			*(volatile size_t *)(s->at + i) = i + 1;
	}
	if (how & SERVE_LOCKED && mlock(s->at, s->bytes))
		_exit(1);
	if (how & SERVE_SWAPPED)
		madvise(s->at, s->bytes, MADV_PAGEOUT);
	if (how & SERVE_FIFO)
		be_urgent();
	signal(SIGTERM, servant_end);
	signal(SIGUSR1, servant_poked);
	if (write(s->ready[1], &s->at, sizeof(s->at)) != sizeof(s->at))
		_exit(1);
	close(s->end[1]);
	while (how & SERVE_BUSY && good && !servant_told) {
		for (i = 0; i < s->bytes; i += GUEST_PAGE) {
			size_t *word = (size_t *)(s->at + i);

			good &= *(volatile size_t *)word == i + 1;
			*(volatile size_t *)(word + 1) += 1;
		}
	}
	while (how & SERVE_SWAPPED && !servant_used)
		usleep(10000);
	for (i = 0; how & SERVE_SWAPPED && i < s->bytes; i += GUEST_PAGE)
		good &= *(volatile size_t *)(s->at + i) == i + 1;
	if (!(how & SERVE_BUSY) && read(s->end[0], &c, 1))
		_exit(1);
	_exit(!good || !servant_check(s->at, s->bytes));
}

/* A servant of @group (NULL: of none) with @bytes of memory. */
static inline struct servant serve(const char *group, size_t bytes, int how)
{
	struct servant s = { .bytes = bytes };
	int status = 0;

	if (pipe(s.ready) || pipe(s.end))
		guest_die("pipe");
	s.pid = fork();
	if (!s.pid) {
		if (group && guest_join(group))
			_exit(1);
		servant_run(&s, how);
	}
	close(s.ready[1]);
	close(s.end[0]);
	if (read(s.ready[0], &s.at, sizeof(s.at)) != sizeof(s.at)) {
		waitpid(s.pid, &status, 0);
		guest_die("a servant of %zu MiB (how %d) ended, status %#x: %s",
			  bytes >> 20, how, status, guest_status());
	}
	return s;
}

/* It uses its memory, and waits again. */
static inline void servant_poke(const struct servant *s)
{
	kill(s->pid, SIGUSR1);
}

/* Its pages in bank set @set. */
static inline long servant_in(const struct servant *s, int set)
{
	long n = 0;
	size_t i;

	for (i = 0; i < s->bytes; i += GUEST_PAGE)
		n += guest_set_of(guest_pfn(s->pid, s->at + i)) == set;
	return n;
}

/* Its pages that are not of node 0, as the kernel says; -1: it doesn't. */
static inline long servant_far(const struct servant *s)
{
	long n = 0;
	size_t i;

	for (i = 0; i < s->bytes; i += GUEST_PAGE) {
		void *page = s->at + i;
		int node = -1;

		if (syscall(SYS_move_pages, s->pid, 1ul, &page, NULL, &node, 0))
			return -1;
		n += node > 0;
	}
	return n;
}

/* Let it end. Return: its memory was as it had written it. */
static inline bool dismiss(struct servant *s)
{
	int status;

	close(s->end[1]);
	close(s->ready[0]);
	kill(s->pid, SIGTERM);
	return waitpid(s->pid, &status, 0) == s->pid && !status;
}

/* Whether locked pages may move; 0 by default on PREEMPT_RT. */
#define LOCKED	"/proc/sys/vm/compact_unevictable_allowed"

#endif /* SERVANT_H */
