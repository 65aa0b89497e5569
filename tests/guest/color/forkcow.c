/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Children inherit; copy-on-write copies go by the colours of the one who
 * writes; a child that changed group gets copies in its own colours. Reading copies
 * nothing, also where the processor takes a fault to note that a page was used.
 */
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (2ul << 20)

static int reap(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static bool holds(const char *p, char value)
{
	size_t i;

	for (i = 0; i < BYTES; i += GUEST_PAGE)
		if (p[i] != value)
			return false;
	return true;
}

static void fill(char *p, char value)
{
	size_t i;

	for (i = 0; i < BYTES; i += GUEST_PAGE)
		p[i] = value;
}

/* Whether reading pages that the kernel has aged leaves each where it is. */
static bool reading_copies_nothing(const char *p, char value)
{
	static u64 was[BYTES / 4096];
	size_t n = BYTES / GUEST_PAGE, i, moved = 0;

	for (i = 0; i < n; i++)
		was[i] = guest_pfn(0, p + i * GUEST_PAGE);
	if (set_kernel("/proc/self/clear_refs", "1"))
		guest_die("clear_refs");
	if (!holds(p, value))
		return false;
	for (i = 0; i < n; i++)
		moved += guest_pfn(0, p + i * GUEST_PAGE) != was[i];
	if (moved)
		printf("# %zu of %zu pages were copied\n", moved, n);
	return !moved;
}

int main(void)
{
	struct guest_audit sum;
	char *p;
	pid_t pid;

	guest_group("parent", "0");
	guest_group("child", "2");
	if (guest_join("parent"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(BYTES);
	fill(p, 7);

	pid = fork();
	if (!pid) {
		fill(p, 8);
		sum = guest_audit_range(p, BYTES, "0", NULL);
		guest_check(sum.in == (long)(BYTES / GUEST_PAGE), "fork-inherits",
			    "%ld in, %ld out", sum.in, sum.out);
		_exit(guest_exit());
	}
	guest_check(reap(pid) == 0, "fork-child-status", "failed");
	guest_check(holds(p, 7), "fork-parent-data", "changed by the child");

	pid = fork();
	if (!pid) {
		if (guest_join("child"))
			guest_die("join: %s", guest_status());
		guest_check(reading_copies_nothing(p, 7), "shared-pages-stay",
			    "reading copied them");
		fill(p, 9);
		sum = guest_audit_range(p, BYTES, "2", NULL);
		guest_check(sum.in == (long)(BYTES / GUEST_PAGE),
			    "cow-by-the-writer", "%ld in, %ld out", sum.in,
			    sum.out);
		guest_check(holds(p, 9), "cow-data", "wrong content");
		_exit(guest_exit());
	}
	guest_check(reap(pid) == 0, "cow-child-status", "failed");
	fill(p, 5);
	sum = guest_audit_range(p, BYTES, "0", NULL);
	guest_check(sum.in == (long)(BYTES / GUEST_PAGE), "cow-parent-reuses",
		    "%ld in, %ld out", sum.in, sum.out);
	return guest_exit();
}
