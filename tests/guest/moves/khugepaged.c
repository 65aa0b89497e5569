/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * khugepaged and MADV_COLLAPSE: coloured small pages are not replaced by a
 * huge one; a fork's and an exec's address space neither.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "moves.h"

#define HUGE GUEST_HUGE
#define BYTES (4 * HUGE)

/* Small pages where huge ones could be: touched while huge ones are off. */
static char *small_pages(void)
{
	char *p = guest_map_anon(BYTES + HUGE);

	p = (char *)(((unsigned long)p + HUGE - 1) & ~(HUGE - 1));
	set_kernel(THP "enabled", "never");
	stamp(p, BYTES / GUEST_PAGE, 5);
	set_kernel(THP "enabled", "always");
	madvise(p, BYTES, MADV_HUGEPAGE);
	return p;
}

/*
 * An uncoloured process that khugepaged has something to do for: without one it
 * does not scan at all, and proves nothing of the coloured ones.
 */
static void bait(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	small_pages();
	for (;;)
		pause();
}

/* 0: collapsed. */
static int uncoloured(void)
{
	char *p = small_pages();
	struct guest_audit sum;

	khugepaged_scans();
	sum = guest_audit_range(p, BYTES, NULL, NULL);
	printf("# uncoloured: %ld small pages became huge\n", sum.huge);
	return sum.huge == 0;
}

static void coloured(const char *name)
{
	size_t n = BYTES / GUEST_PAGE;
	struct guest_audit sum;
	char label[64];
	char *p = small_pages();
	u64 *was = frames_of(p, n);

	khugepaged_scans();
	snprintf(label, sizeof(label), "%s-stays", name);
	guest_check(frames_moved(p, was, n) == 0, label, "%zu pages moved",
		    frames_moved(p, was, n));
	snprintf(label, sizeof(label), "%s-madv-collapse", name);
	guest_check(madvise(p, HUGE, MADV_COLLAPSE) != 0, label,
		    "collapsed by request");
	snprintf(label, sizeof(label), "%s-in-color", name);
	sum = guest_audit_range(p, BYTES, "0-3", NULL);
	guest_check(sum.in == (long)n && !sum.huge, label,
		    "%ld in, %ld out, %ld huge", sum.in, sum.out, sum.huge);
}

static int forked(void)
{
	coloured("khugepaged-fork");
	return guest_exit();
}

int main(int argc, char **argv)
{
	if (access(THP "enabled", R_OK)) {
		guest_skip("khugepaged", "this kernel has no huge pages");
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "execed")) {
		coloured("khugepaged-exec");
		return guest_exit();
	}
	khugepaged_hurry();
	if (in_child(uncoloured))
		guest_skip("khugepaged-provoked", "khugepaged collapsed nothing");
	else
		guest_check(true, "khugepaged-provoked", "-");
	bait();
	guest_group("khugepaged", "0-3");
	if (guest_join("khugepaged"))
		guest_die("join: %s", guest_status());
	coloured("khugepaged");
	guest_check(in_child(forked) == 0, "khugepaged-fork", "failed");
	fflush(stdout);
	if (!guest_exit())
		execl("/proc/self/exe", argv[0], "execed", NULL);
	return 1;
}
