/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The colours of a group on the near node run out while it has others on the next one.
 * Pages come from there as fast as from near: by per-CPU lists, and not one by one. They
 * come from near again when pages are freed there.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEAR 2	/* bank sets of the two nodes */
#define AWAY 18
#define STEP 1024
#define PAGES 4096
#define MOST (128ul << 20)

/* Of the pages of @p, how many lie in bank set @set. */
static long in_set(const char *p, size_t pages, int set)
{
	long n = 0;
	size_t i;

	for (i = 0; i < pages; i++)
		n += guest_set_of(guest_pfn(0, p + i * GUEST_PAGE)) == set;
	return n;
}

/* Requests that no per-CPU list answered: the group's times are of these. */
static long long slow(void)
{
	const char *line, *text = guest_read("groups/away/times");
	long long sum = 0, n;

	for (line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "fault_%*s %lld", &n) == 1)
			sum += n;
	}
	return sum;
}

static void member(void)
{
	char *p = guest_map_anon(MOST);
	long long before, took;
	size_t at = 0;
	long away = 0;

	/* Until a whole step comes from away: nothing is left near but what others free. */
	for (; at < MOST / 2 + MOST / 4 && away < STEP * 9 / 10; at += STEP * GUEST_PAGE) {
		guest_touch(p + at, STEP * GUEST_PAGE);
		away = in_set(p + at, STEP, AWAY);
	}
	if (away < STEP * 9 / 10)
		guest_die("%ld of the last %d pages are from away", away, STEP);

	before = slow();
	guest_touch(p + at, PAGES * GUEST_PAGE);
	took = slow() - before;
	away = in_set(p + at, PAGES, AWAY);
	guest_check(away > PAGES * 9 / 10, "away-when-near-is-full",
		    "%ld of %d pages are from away", away, PAGES);
	guest_check(took < PAGES / 8, "away-by-lists",
		    "%lld of %d faults went beyond the per-CPU lists", took, PAGES);

	/* What is freed near is taken again. */
	munmap(p, STEP * 4 * GUEST_PAGE);
	usleep(500000);
	guest_touch(p + at + PAGES * GUEST_PAGE, STEP * GUEST_PAGE);
	away = in_set(p + at + PAGES * GUEST_PAGE, STEP, AWAY);
	guest_check(away < STEP / 10, "near-again-when-freed",
		    "%ld of %d pages are from away", away, STEP);
}

int main(void)
{
	cpu_set_t cpus;
	pid_t pid;
	int status;

	guest_map();
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		guest_die("sched_setaffinity");
	guest_group("away", "2,18");
	pid = fork();
	if (!pid) {
		if (guest_join("away"))
			guest_die("join: %s", guest_status());
		member();
		_exit(guest_exit());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		guest_die("fork");
	guest_check(WIFEXITED(status) && !WEXITSTATUS(status), "away",
		    "status %#x", status);
	if (guest_ungroup("away"))
		guest_die("rmdir: %s", guest_status());
	return guest_exit();
}
