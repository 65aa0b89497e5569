/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * KSM: equal pages of coloured tasks are never merged: not when they ask for
 * it, not when they had asked before they joined, not process-wide.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "moves.h"

#define KSM "/sys/kernel/mm/ksm/"
#define PAGES 256ul
#define BYTES (PAGES * GUEST_PAGE)
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif

static void scan(void)
{
	long long scans = kernel_number(KSM "full_scans", NULL);
	int i;

	set_kernel(KSM "run", "1");
	for (i = 0; i < 100; i++) {
		wait_ms(100);
		if (kernel_number(KSM "full_scans", NULL) >= scans + 4)
			break;
	}
	set_kernel(KSM "run", "0");
}

static char *equal_pages(void)
{
	char *p = guest_map_anon(BYTES);

	memset(p, 0x5a, BYTES);
	return p;
}

/* How many pages share a frame with an earlier one. */
static size_t merged(const char *p)
{
	u64 *pfn = frames_of(p, PAGES);
	size_t i, j, n = 0;

	for (i = 1; i < PAGES; i++)
		for (j = 0; j < i; j++)
			if (pfn[i] == pfn[j]) {
				n++;
				break;
			}
	free(pfn);
	return n;
}

/* An uncoloured process to scan: without one ksmd sleeps, and proves nothing. */
static void bait(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	madvise(equal_pages(), BYTES, MADV_MERGEABLE);
	for (;;)
		pause();
}

/* 0: merged. */
static int uncoloured(void)
{
	char *p = equal_pages();

	if (madvise(p, BYTES, MADV_MERGEABLE))
		return 1;
	scan();
	printf("# uncoloured: %zu pages merged\n", merged(p));
	return merged(p) == 0;
}

static void join(void)
{
	if (guest_join("ksm"))
		guest_die("join: %s", guest_status());
}

/* The areas were marked before the task joined, nothing was merged yet. */
static int marked_before(void)
{
	char *p = equal_pages();

	madvise(p, BYTES, MADV_MERGEABLE);
	join();
	scan();
	guest_check(merged(p) == 0, "ksm-marked-before", "%zu pages merged",
		    merged(p));
	return guest_exit();
}

static int process_wide(void)
{
	char *p;

	if (prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) < 0) {
		guest_skip("ksm-process-wide", "no prctl for it (before 6.4)");
		return 0;
	}
	prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0);
	join();
	guest_check(prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) == 0,
		    "ksm-process-wide-ends", "still on after joining");
	guest_check(prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) == 0,
		    "ksm-process-wide-request", "%s", strerror(errno));
	p = equal_pages();
	scan();
	guest_check(merged(p) == 0, "ksm-process-wide", "%zu pages merged",
		    merged(p));
	return guest_exit();
}

static int asks(void)
{
	struct guest_audit sum;
	char *p;

	join();
	p = equal_pages();
	guest_check(madvise(p, BYTES, MADV_MERGEABLE) == 0, "ksm-request",
		    "%s", strerror(errno));
	scan();
	guest_check(merged(p) == 0, "ksm-stays", "%zu pages merged",
		    merged(p));
	sum = guest_audit_range(p, BYTES, "0-1", NULL);
	guest_check(sum.in == (long)PAGES, "ksm-in-color", "%ld in, %ld out",
		    sum.in, sum.out);
	return guest_exit();
}

int main(void)
{
	if (access(KSM "run", W_OK)) {
		guest_skip("ksm", "this kernel has no KSM");
		return 0;
	}
	set_kernel(KSM "pages_to_scan", "20000");
	set_kernel(KSM "sleep_millisecs", "10");
	set_kernel(KSM "run", "0");
	guest_group("ksm", "0-1");
	if (in_child(uncoloured))
		guest_skip("ksm-provoked", "ksmd merged nothing");
	else
		guest_check(true, "ksm-provoked", "-");
	bait();
	guest_check(in_child(asks) == 0, "ksm-asks", "failed");
	guest_check(in_child(marked_before) == 0, "ksm-before", "failed");
	guest_check(in_child(process_wide) == 0, "ksm-prctl", "failed");
	return guest_exit();
}
