/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pages that can't go, tens of thousands side by side: page cache behind them still makes
 * room for a group that has but these frames, and for its reserve.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"
#include "../lib/pin.h"

#include <stdlib.h>
#include <string.h>

#define MIB	(1ul << 20)
#define NODE1	"/sys/devices/system/node/node1/meminfo"
#define GROUP	"groups/stuck/"

/* Half of a node is a bank set, and has no other colours: a walk goes over 512 MiB. */
static void write_map(const char *before)
{
	char text[4096], *copy = strdup(before), *line, *rest = copy;
	int n;

	n = sprintf(text, "soloist-map 1\nlayout\nbank 20\n");
	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, "range ", 6))
			n += sprintf(text + n, "%s\n", line);
	free(copy);
	if (guest_take_map(text))
		guest_die("map: %s", guest_status());
}

/* A child that has @bytes, wherever the kernel has room: in CMA, too. */
static pid_t stranger(size_t bytes)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		guest_die("pipe");
	pid = fork();
	if (!pid) {
		guest_touch(guest_map_anon(bytes), bytes);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		guest_die("the stranger ended");
	close(ready[0]);
	return pid;
}

/* Page cache in all memory that is free; a child of lib/busy-memory keeps it. */
static pid_t fill_with_cache(void)
{
	char program[256], line[128] = "";
	int said[2];
	pid_t pid;

	snprintf(program, sizeof(program), "%s/build/tests/guest/lib/busy-memory",
		 getenv("SOLOIST_ROOT"));
	if (pipe(said))
		guest_die("pipe");
	pid = fork();
	if (!pid) {
		dup2(said[1], 1);
		execl(program, program, "full", NULL);
		_exit(1);
	}
	close(said[1]);
	if (read(said[0], line, sizeof(line) - 1) <= 0 || *line != '#')
		guest_die("%s: '%s'", program, line);
	close(said[0]);
	return pid;
}

static long long holds(const char *key)
{
	return guest_stat(GROUP "occupancy", key);
}

/* A member touches @frames; its exit status. */
static int touches(long long frames)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		guest_touch(guest_member_memory("stuck", frames * GUEST_PAGE),
			    frames * GUEST_PAGE);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* Free frames of CMA, which no list takes; 0: there is no CMA. */
static long long free_cma(void)
{
	return kernel_number("/proc/vmstat", "nr_free_cma");
}

static void behind_pinned(void)
{
	long long pinned = holds("pinned"), cache = holds("cache"), nobodys, cma = free_cma();
	int status;

	nobodys = holds("free") + holds("listed");
	printf("# %lld frames are pinned, %lld page cache, %lld nobody's\n", pinned, cache,
	       nobodys);
	guest_check(pinned > 50000 && cache > 1000, "stuck-is-full", "%lld and %lld", pinned,
		    cache);
	status = touches(nobodys + cache / 2);
	guest_check(!status && !guest_stat(GROUP "stats", "exhausted"), "stuck-fault-goes-on",
		    "status %#x, exhausted %lld times", status,
		    guest_stat(GROUP "stats", "exhausted"));
	printf("# %lld frames in use were looked at; %lld of CMA came free\n",
	       guest_stat(GROUP "stats", "looked"), free_cma() - cma);
	/* Others have what the member left. */
	guest_write("lists", "drain");
	guest_check(!guest_writef(GROUP "reserve", "%lld", (nobodys + cache / 4) * GUEST_PAGE),
		    "stuck-reserve-is-met", "%s", guest_status());
}

int main(void)
{
	char before[4096];
	pid_t pinned, other, cache;

	strcpy(before, guest_read("map"));
	/* The last node has the CMA that some kernels have. */
	guest_run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	write_map(before);
	guest_write("lists", "drain");
	/* The kernel and page cache get the rest of the node. */
	pinned = pin((kernel_number(NODE1, "Node 1 MemFree") - (280 << 10)) << 10);
	if (!pinned) {
		guest_skip("stuck", "no io_uring");
		goto out;
	}
	printf("# CMA has %lld free frames\n", free_cma());
	other = stranger(120 * MIB);
	cache = fill_with_cache();
	guest_group("stuck", "2");
	if (guest_write(GROUP "exhaust", "fail"))
		guest_die("exhaust: %s", guest_status());
	behind_pinned();
	guest_ungroup("stuck");
	kill(cache, SIGKILL);
	waitpid(cache, NULL, 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	unpin(pinned);
out:
	guest_write("lists", "drain");
	guest_check(!guest_take_map(before), "map-is-put-back", "%s", guest_status());
	return guest_exit();
}
