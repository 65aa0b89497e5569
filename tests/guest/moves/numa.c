/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
/*
 * NUMA balancing: a task that runs far from its coloured memory keeps it
 * there; its forks too. Needs two nodes, the second with a CPU.
 */
#include <sys/syscall.h>

#include "moves.h"

#define BALANCING "/proc/sys/kernel/numa_balancing"
#define TUNE "/sys/kernel/debug/sched/numa_balancing/"
#define PAGES 2048ul
#define BYTES (PAGES * GUEST_PAGE)

static int far_cpu(void)
{
	return (int)kernel_number("/sys/devices/system/node/node1/cpulist",
				  NULL);
}

static void touch_for(volatile char *p, int seconds)
{
	time_t end = time(NULL) + seconds;
	size_t i;

	while (time(NULL) < end)
		for (i = 0; i < BYTES; i += GUEST_PAGE)
			p[i]++;
}

/* How long it takes to move an uncoloured task's pages. */
static int seconds;

static void use_far(const char *name, char *p)
{
	u64 *was = frames_of(p, PAGES);
	char label[64];
	struct guest_audit sum;
	size_t moved;

	guest_run_on(far_cpu());
	touch_for(p, 2 * seconds + 1);
	moved = frames_moved(p, was, PAGES);
	snprintf(label, sizeof(label), "%s-stays", name);
	guest_check(moved == 0, label, "%zu pages moved", moved);
	sum = guest_audit_range(p, BYTES, "0-1", NULL);
	snprintf(label, sizeof(label), "%s-in-color", name);
	guest_check(sum.in == (long)PAGES, label, "%ld in, %ld out", sum.in,
		    sum.out);
	free(was);
}

static char *near_pages(void)
{
	char *p;

	guest_run_on(0);
	p = guest_map_anon(BYTES);
	guest_touch(p, BYTES);
	return p;
}

/* Seconds until pages came to the far node; 0: none did. */
static int uncoloured(void)
{
	char *p = near_pages();
	u64 *was = frames_of(p, PAGES);
	size_t moved = 0;
	int i;

	guest_run_on(far_cpu());
	for (i = 0; i < 10 && !moved; i++) {
		touch_for(p, 1);
		moved = frames_moved(p, was, PAGES);
	}
	printf("# uncoloured: %zu of %lu pages moved after %d s\n", moved,
	       PAGES, i);
	return moved ? i : 0;
}

static char *forked_pages;

static int forked(void)
{
	guest_touch(forked_pages, BYTES);
	use_far("numa-fork", forked_pages);
	return guest_exit();
}

/* As the scheduler has it: pages that NUMA balancing moved for this task. */
static long long balanced(void)
{
	return kernel_number("/proc/self/sched", "numa_pages_migrated");
}

/*
 * Who left its group is balanced again, but its pages stay in their colours as
 * long as they live: the kernel must not believe that it moved them.
 */
static int left(void)
{
	char *p;
	u64 *was;
	long long before, after;

	guest_group("numa-left", "4-5");
	if (guest_join("numa-left"))
		guest_die("join: %s", guest_status());
	p = near_pages();
	was = frames_of(p, PAGES);
	if (guest_ungroup("numa-left"))
		guest_die("rmdir: %s", guest_status());
	before = balanced();
	guest_run_on(far_cpu());
	touch_for(p, 2 * seconds + 1);
	after = balanced();
	guest_check(frames_moved(p, was, PAGES) == 0, "numa-left-stays",
		    "%zu pages moved", frames_moved(p, was, PAGES));
	/* A page that it had before it joined may truly move; these thousands not. */
	guest_check(after - before < (long long)PAGES / 64,
		    "numa-left-not-counted-as-moved", "%lld pages",
		    after - before);
	free(was);
	return guest_exit();
}

int main(void)
{
	char *p;

	if (access(BALANCING, W_OK) || far_cpu() <= 0) {
		guest_skip("numa", "no NUMA balancing, or one node only");
		return 0;
	}
	mkdir("/sys/kernel/debug", 0755);
	set_kernel(TUNE "scan_delay_ms", "10");
	set_kernel(TUNE "scan_period_min_ms", "100");
	set_kernel(TUNE "hot_threshold_ms", "10000");
	set_kernel(BALANCING, "1");
	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	seconds = in_child(uncoloured);
	if (!seconds)
		guest_skip("numa-provoked", "nothing was balanced");
	else
		guest_check(seconds <= 10, "numa-provoked", "status %d", seconds);
	if (seconds)
		guest_check(in_child(left) == 0, "numa-left", "failed");
	guest_group("numa", "0-1");
	if (guest_join("numa"))
		guest_die("join: %s", guest_status());
	p = near_pages();
	use_far("numa", p);
	forked_pages = near_pages();
	guest_check(in_child(forked) == 0, "numa-fork", "failed");
	return guest_exit();
}
