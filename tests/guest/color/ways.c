/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A map that is no XOR: three channels, page by page. Every page is of the
 * group's channel, by a plain division here, and a single bank set has its
 * pages found, too.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (64ul << 20)

/* QEMU's memory of arm64 begins at 1 GiB. */
#ifdef __aarch64__
#define RANGES	"range 0x40000000 0x80000000 node 0\n" \
		"range 0x80000000 0xc0000000 node 1\n"
#else
#define RANGES	"range 0x0 0x40000000 node 0\n" \
		"range 0x40000000 0x80000000 node 1\n"
#endif

static const char ways[] =
	"soloist-map 1\n"
	"name three-ways\n"
	"layout\n"
	"interleave 3 4096\n"
	"bank 13^17 14^18 15^19 16^20\n"
	RANGES;

/* Pages of the mapping by the rest of their frame's number within the node. */
static void count(const char *p, size_t bytes, long *of)
{
	size_t at;

	for (at = 0; at < bytes; at += GUEST_PAGE) {
		u64 pfn = guest_pfn(0, p + at);

		if (pfn)
			of[pfn % (1u << 18) % 3]++;
	}
}

/* Channel 1 of node 0: bank sets 16 to 31. */
static int one_channel(void)
{
	long of[3] = { 0 }, pages = BYTES / GUEST_PAGE;
	char *p = guest_map_anon(BYTES);
	struct guest_audit sum;

	if (guest_join("channel"))
		guest_die("join: %s", guest_status());
	guest_touch(p, BYTES);
	count(p, BYTES, of);
	guest_check(of[1] == pages, "pages-are-of-the-channel",
		    "%ld of %ld; %ld and %ld of the others", of[1], pages,
		    of[0], of[2]);
	sum = guest_audit_range(p, BYTES, "16-31", NULL);
	guest_check(sum.in == pages, "all-in-the-bank-sets",
		    "%ld in, %ld out", sum.in, sum.out);
	return guest_exit();
}

/* One bank set: 1 GiB / 3 / 16 is 5461 frames, many of them the kernel's. */
static int one_set(void)
{
	size_t bytes = 2048 * GUEST_PAGE;
	char *p = guest_map_anon(bytes);
	struct guest_audit sum;

	if (guest_join("set"))
		guest_die("join: %s", guest_status());
	guest_touch(p, bytes);
	sum = guest_audit_range(p, bytes, "37", NULL);
	guest_check(sum.in == 2048, "a-third-of-a-set",
		    "%ld in, %ld out", sum.in, sum.out);
	return guest_exit();
}

static void child(int (*run)(void), const char *name)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(run());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		guest_die("fork");
	guest_check(WIFEXITED(status) && !WEXITSTATUS(status), name,
		    "status %#x", status);
}

int main(void)
{
	static char before[65536];
	int err;

	strcpy(before, guest_read("map"));
	err = guest_take_map(ways);
	if (!guest_check(!err, "map-is-taken", "%s", guest_status()))
		return guest_exit();
	/* The fourth channel's numbers hold no page. */
	guest_group("channel", "16-31");
	guest_group("set", "37");
	err = guest_write("groups/set/bank_set", "48-63");
	guest_check(err != 0, "no-fourth-channel", "sets 48-63 were taken");
	child(one_channel, "one-channel");
	child(one_set, "one-set");
	if (guest_ungroup("channel") || guest_ungroup("set"))
		guest_die("rmdir: %s", guest_status());
	err = guest_take_map(before);
	guest_check(!err, "map-is-put-back", "%s", guest_status());
	return guest_exit();
}
