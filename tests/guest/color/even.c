/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pages of a group are spread over its cells (bank sets x LLC colours) in turn:
 * over all LLC colours of one bank set, so that a task has its whole share of
 * the cache; over all bank sets, neighbours in different ones, so that accesses
 * to neighbours overlap. Also when the lists are uneven to begin with, and when
 * one bank set has no free page.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 2048
#define MAX_SETS 64

/* Where the pages of a mapping lie. */
struct spread {
	long set[MAX_SETS];
	long llc[MAX_SETS];
	long beside;	/* pages in the bank set of the page before */
	long pages;
};

static struct spread spread_of(const char *p, size_t pages)
{
	struct spread s = { 0 };
	int before = -1;
	size_t i;

	for (i = 0; i < pages; i++) {
		u64 pfn = guest_pfn(0, p + i * GUEST_PAGE);
		int set = pfn ? guest_set_of(pfn) : -1;

		if (set < 0 || set >= MAX_SETS)
			continue;
		s.set[set]++;
		s.llc[guest_llc_of(pfn) % MAX_SETS]++;
		s.beside += set == before;
		s.pages++;
		before = set;
	}
	return s;
}

/*
 * The @n counts from @of on are alike, within a quarter of the even share: a
 * cell whose frames are all taken nearby leaves its turn to others.
 */
static bool alike(const long *of, int n, long pages, char *text, size_t room)
{
	long share = pages / n;
	bool good = share > 0;
	int i, at = 0;

	for (i = 0; i < n; i++) {
		good = good && of[i] >= share - share / 4 - 1 &&
		       of[i] <= share + share / 4 + 1;
		at += snprintf(text + at, room - at, " %ld", of[i]);
	}
	return good;
}

static void check_spread(const char *p, int first, int sets, const char *name)
{
	struct spread s = spread_of(p, PAGES);
	char full[64], text[256];

	snprintf(full, sizeof(full), "%s-over-sets", name);
	guest_check(alike(s.set + first, sets, PAGES, text, sizeof(text)), full,
		    "pages in the bank sets:%s", text);
	snprintf(full, sizeof(full), "%s-over-llc-colours", name);
	guest_check(alike(s.llc, guest_map()->n_llc, PAGES, text, sizeof(text)),
		    full, "pages in the LLC colours:%s", text);
	snprintf(full, sizeof(full), "%s-neighbours-apart", name);
	guest_check(sets == 1 || s.beside <= PAGES / 20, full,
		    "%ld of %d pages lie in the bank set of the page before",
		    s.beside, PAGES);
}

/* One bank set: its LLC colours in turn. */
static void one_set(void)
{
	char *p = guest_map_anon(PAGES * GUEST_PAGE);

	guest_touch(p, PAGES * GUEST_PAGE);
	check_spread(p, 2, 1, "one-set");
}

static void four_sets(void)
{
	char *p = guest_map_anon(PAGES * GUEST_PAGE);

	guest_touch(p, PAGES * GUEST_PAGE);
	check_spread(p, 4, 4, "four-sets");
}

/* What is freed lies in one bank set; the next pages shall not. */
static void uneven_lists(void)
{
	char *p = guest_map_anon(PAGES * GUEST_PAGE);
	char *q = guest_map_anon(PAGES * GUEST_PAGE);
	long freed = 0;
	size_t i;

	guest_touch(p, PAGES * GUEST_PAGE);
	for (i = 0; i < PAGES; i++) {
		char *at = p + i * GUEST_PAGE;

		if (guest_set_of(guest_pfn(0, at)) != 9)
			continue;
		madvise(at, GUEST_PAGE, MADV_DONTNEED);
		freed++;
	}
	if (freed < PAGES / 8)
		guest_die("only %ld pages were in bank set 9", freed);
	guest_touch(q, PAGES * GUEST_PAGE);
	check_spread(q, 8, 4, "uneven-lists");
}

static void hog_set(int go, int done)
{
	size_t bytes = 256ul << 20, at;
	char *p = guest_map_anon(bytes), c = 0;

	if (guest_join("hog"))
		guest_die("join hog: %s", guest_status());
	for (at = 0; at < bytes && guest_stat("groups/hog/stats", "spilled") <= 0;
	     at += 64 * GUEST_PAGE)
		guest_touch(p + at, 64 * GUEST_PAGE);
	if (write(done, &c, 1) != 1 || read(go, &c, 1) < 0)
		guest_die("pipe");
	_exit(0);
}

/* Bank set 13 is full: the other three give alike. */
static void dry_set(void)
{
	char *p = guest_map_anon(PAGES * GUEST_PAGE), c, text[256];
	int go[2], done[2], status;
	struct spread s;
	long rest[3];
	pid_t pid;

	if (pipe(go) || pipe(done) || (pid = fork()) < 0)
		guest_die("fork");
	if (!pid) {
		close(go[1]);
		hog_set(go[0], done[1]);
	}
	close(done[1]);
	if (read(done[0], &c, 1) != 1)
		guest_die("the hog ended");
	guest_touch(p, PAGES * GUEST_PAGE);
	s = spread_of(p, PAGES);
	rest[0] = s.set[12];
	rest[1] = s.set[14];
	rest[2] = s.set[15];
	guest_check(alike(rest, 3, PAGES - s.set[13], text, sizeof(text)),
		    "dry-set-others-alike",
		    "pages in bank sets 12, 14, 15:%s; in 13, which was full: %ld",
		    text, s.set[13]);
	close(go[1]);
	waitpid(pid, &status, 0);
}

/* In a child, which joins, so that the test itself stays outside. */
static void in_group(const char *group, void (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (guest_join(group))
			guest_die("join %s: %s", group, guest_status());
		run();
		_exit(guest_exit());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		guest_die("fork");
	guest_check(WIFEXITED(status) && !WEXITSTATUS(status), group,
		    "status %#x", status);
}

int main(void)
{
	guest_map();
	guest_group("one", "2");
	guest_group("four", "4-7");
	guest_group("uneven", "8-11");
	guest_group("hog", "13");
	guest_group("dry", "12-15");
	if (guest_write("groups/hog/exhaust", "spill"))
		guest_die("exhaust: %s", guest_status());
	in_group("one", one_set);
	in_group("four", four_sets);
	in_group("uneven", uneven_lists);
	in_group("dry", dry_set);
	if (guest_ungroup("one") || guest_ungroup("four") ||
	    guest_ungroup("uneven") || guest_ungroup("hog") ||
	    guest_ungroup("dry"))
		guest_die("rmdir: %s", guest_status());
	return guest_exit();
}
