/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A map of many ranges, some too short for the equations to be solved, and one beyond
 * the machine's memory: refilling goes over all seams, finds frames of the right colour
 * only, comes to an end, and leaves the kernel its last reserves.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB	(1ul << 20)
#define BYTES	(32 * MiB)
#define PARTS	24ull
#define BELOW_LOW_KIB	1024
/* In the emulated machine's map each node has 16 bank sets: these are of nodes 0 and 2. */
#define SET	"1"
#define FAR_SET	"33"

static int add_range(char *text, unsigned long long start, unsigned long long end,
		     unsigned int node)
{
	return sprintf(text, "range %#llx %#llx node %u base %#llx\n", start, end, node, start);
}

/* The map @from, whose ranges of node 0 get seams, and node 2, which is not there. */
static void with_seams(char *text, char *from)
{
	unsigned long long start, end, part, at;
	unsigned int node;
	char *line;

	while ((line = strsep(&from, "\n"))) {
		/* Rows and columns would have to tell where the far range's lie. */
		if (!strncmp(line, "row ", 4) || !strncmp(line, "col ", 4) || !*line)
			continue;
		if (sscanf(line, "range %llx %llx node %u", &start, &end, &node) != 3) {
			text += sprintf(text, "%s\n", line);
			continue;
		}
		part = node ? end - start : (end - start) / PARTS / MiB * MiB;
		for (at = start; at + part < end; at += part) {
			text += add_range(text, at, at + part - MiB, node);
			text += add_range(text, at + part - MiB, at + part, node);
		}
		text += add_range(text, at, end, node);
	}
	add_range(text, 1ull << 51, (1ull << 51) + (1ull << 30), 2);
}

static int member(void)
{
	char *p = guest_member_memory("seams", BYTES);
	struct guest_audit sum;

	guest_touch(p, BYTES);
	sum = guest_audit_range(p, BYTES, SET, NULL);
	guest_check(sum.in == (long)(BYTES / GUEST_PAGE) && !sum.out, "pages-are-of-the-set",
		    "%ld in, %ld out", sum.in, sum.out);
	return guest_exit();
}

/* Kill a child that lists all, when some frames have come. Return: those that it left. */
static long long kill_filler(long long some)
{
	pid_t pid = fork();

	if (!pid)
		_exit(!!guest_write("lists", "all"));
	while (guest_stat("stats", "listed") < some && !waitpid(pid, NULL, WNOHANG))
		usleep(100);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return guest_stat("stats", "listed");
}

/* What a signal ended is not all, nor is what went with its map. */
static void not_all(const char *map)
{
	long long all = guest_stat("stats", "listed"), some;
	int i;

	guest_check(!strcmp(guest_read("lists"), "all\n"), "lists-are-all", "%s",
		    guest_read("lists"));
	if (guest_take_map(map))
		guest_die("map: %s", guest_status());
	guest_check(!strcmp(guest_read("lists"), "demand\n"), "new-map-lists-nothing", "%s",
		    guest_read("lists"));
	for (i = 0, some = all; i < 20 && some > all / 2; i++) {
		guest_write("lists", "drain");
		some = kill_filler(all / 100);
	}
	guest_check(some <= all / 2 && !strcmp(guest_read("lists"), "demand\n"),
		    "killed-fill-is-not-all", "%lld of %lld frames; %s", some, all,
		    guest_read("lists"));
}

/* Lists of all that is free leave each zone its low watermark; then others take what they need. */
static void last_reserves(void)
{
	long long below;
	int err = guest_write("lists", "all");

	below = kernel_below_low() * GUEST_PAGE / 1024;
	printf("# %lld frames are listed; a zone is %lld KiB below its low watermark\n",
	       guest_stat("stats", "listed"), below);
	guest_check(!err && below <= BELOW_LOW_KIB, "last-reserves-are-left",
		    "returned %d, %lld KiB are not there", err, below);
	guest_write("lists", "drain");
}

int main(void)
{
	static char before[65536], copy[65536], text[65536];
	int err, status;
	pid_t pid;

	strcpy(before, guest_read("map"));
	strcpy(copy, before);
	with_seams(text, copy);
	err = guest_take_map(text);
	if (!guest_check(!err, "map-is-taken", "%s", guest_status()))
		return guest_exit();

	guest_group("seams", SET);
	err = guest_writef("groups/seams/reserve", "%lu", BYTES);
	guest_check(!err, "reserve", "returned %d, %s", err, guest_status());
	pid = fork();
	if (!pid)
		_exit(member());
	waitpid(pid, &status, 0);
	guest_check(!status, "member", "status %#x", status);
	guest_ungroup("seams");

	guest_group("far", FAR_SET);
	err = guest_write("groups/far/reserve", "4K");
	guest_check(err, "far-has-no-page", "reserve was taken");
	guest_ungroup("far");

	err = guest_write("lists", "all");
	guest_check(!err, "all-is-listed", "returned %d, %s", err, guest_status());
	not_all(text);
	err = guest_write("lists", "drain") ?: guest_write("lists", "demand");
	guest_check(!err, "lists-are-drained", "returned %d, %s", err, guest_status());
	err = guest_take_map(before);
	guest_check(!err && !strcmp(before, guest_read("map")), "map-is-put-back", "returned %d, %s",
		    err, guest_status());
	last_reserves();
	return guest_exit();
}
