/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Failing memory: a soft-offlined page moves, its old frame never comes back;
 * a poisoned one kills its user only, and its group still ends. One that is
 * poisoned while it is free is dropped where it is found, not when a worker
 * comes round to it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>

#include "moves.h"

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
#ifndef MADV_HWPOISON
#define MADV_HWPOISON 100
#endif
#define PAGES 4096ul
#define BYTES (PAGES * GUEST_PAGE)

static int soft(void)
{
	char *p, *more;
	size_t i, again = 0;
	u64 was;

	if (guest_join("failing"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(GUEST_PAGE);
	stamp(p, 1, 17);
	was = guest_pfn(0, p);
	if (madvise(p, GUEST_PAGE, MADV_SOFT_OFFLINE)) {
		guest_skip("soft-offline", strerror(errno));
		return 0;
	}
	guest_check(!stamp_broken(p, 1, 17), "soft-offline-content", "broken");
	guest_check(guest_pfn(0, p) != was, "soft-offline-moves",
		    "frame %#llx still used", (unsigned long long)was);
	more = guest_map_anon(BYTES);
	guest_touch(more, BYTES);
	for (i = 0; i < PAGES; i++)
		again += guest_pfn(0, more + i * GUEST_PAGE) == was;
	guest_check(!again, "soft-offline-gone", "the frame was handed out");
	guest_check(guest_stat("groups/failing/stats", "moved") > 0,
		    "soft-offline-counted", "moved 0");
	return guest_exit();
}

static int hard(void)
{
	char *p;

	signal(SIGBUS, SIG_DFL);
	if (guest_join("failing"))
		_exit(2);
	p = guest_map_anon(GUEST_PAGE);
	*p = 1;
	if (madvise(p, GUEST_PAGE, MADV_HWPOISON))
		return 0;
	*(volatile char *)p = 2;
	return 1;	/* must not get here */
}

/* This CPU for itself alone, so that no worker runs on it meanwhile. */
static void hold_cpu(void)
{
	struct sched_param fifo = { .sched_priority = 50 };
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) ||
	    sched_setscheduler(0, SCHED_FIFO, &fifo))
		guest_die("FIFO on one CPU: %s", strerror(errno));
}

static long long corrupted(void)
{
	return kernel_number("/proc/meminfo", "HardwareCorrupted");
}

/*
 * Lists are stacks: the frame of a page freed late, but not among the last,
 * which this CPU gathers, lies near the top of its list. The kernel says that it can't do anything
 * about a frame it doesn't know (an error), and marks it all the same.
 */
static u64 poison_free_frame(char *p)
{
	char addr[32];
	u64 pfn;

	guest_touch(p, BYTES);
	pfn = guest_pfn(0, p + (PAGES - 256) * GUEST_PAGE);
	madvise(p, BYTES, MADV_DONTNEED);
	snprintf(addr, sizeof(addr), "%#llx",
		 (unsigned long long)pfn * GUEST_PAGE);
	set_kernel("/sys/devices/system/memory/hard_offline_page", addr);
	return pfn;
}

static int listed(void)
{
	long long before = corrupted(), lost;
	char *p;
	size_t i, again = 0;
	u64 bad;

	if (guest_join("failing"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(BYTES);
	guest_touch(p, GUEST_PAGE);
	hold_cpu();
	lost = guest_stat("stats", "lost");
	bad = poison_free_frame(p);
	guest_touch(p, BYTES);
	lost = guest_stat("stats", "lost") - lost;
	if (corrupted() == before) {
		guest_skip("poisoned-in-list", "hard_offline_page has no effect");
		return 0;
	}
	for (i = 0; i < PAGES; i++)
		again += guest_pfn(0, p + i * GUEST_PAGE) == bad;
	guest_check(!again, "poisoned-in-list-gone", "it was handed out");
	guest_check(lost == 1, "poisoned-in-list-dropped",
		    "%lld frames were lost to the lists, not 1", lost);
	return guest_exit();
}

int main(void)
{
	int i, err;

	guest_group("failing", "0-1");
	guest_check(in_child(soft) == 0, "soft-offline", "failed");
	i = in_child(hard);
	if (i == 0)
		guest_skip("hwpoison", "not in this kernel");
	else
		guest_check(i == 255, "hwpoison-kills-its-user", "exit %d", i);
	guest_check(in_child(listed) == 0, "poisoned-in-list", "failed");
	err = guest_ungroup("failing");
	guest_check(!err, "failing-rmdir", "%s", strerror(-err));
	for (i = 0; i < 50 && guest_stat("stats", "removed") > 0; i++)
		wait_ms(100);
	guest_check(guest_stat("stats", "removed") == 0, "failing-group-ends",
		    "%lld removed groups wait for frames",
		    guest_stat("stats", "removed"));
	return guest_exit();
}
