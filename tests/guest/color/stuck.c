/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pages that can't go, tens of thousands side by side: page cache behind them still makes
 * room for a group that has but these frames, and for its reserve. Of shared pages nobody can
 * tell that they stay but by trying; private ones are passed over.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"
#include "../lib/pin.h"

#include <stdlib.h>
#include <string.h>

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

static long long frames_in(long long mib)
{
	return (mib << 20) / (long long)GUEST_PAGE;
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

/*
 * Frames that nobody has, and nearly all that page cache has: the last ones lie far apart.
 * Half of CMA is of the colours, and no list takes its frames.
 */
static long long most_of_all(int node)
{
	long long stuck = holds("mapped") + holds("pinned"), cache = holds("cache");
	long long nobodys = holds("free") + holds("listed") -
			    (kernel_zones("cma", node) << 10) / (long long)GUEST_PAGE / 2;

	printf("# %lld frames are stuck, %lld page cache, %lld nobody's\n", stuck, cache,
	       nobodys);
	guest_check(stuck > frames_in(200) && cache > frames_in(4),
		    "stuck-is-full", "%lld and %lld", stuck,
		    cache);
	return nobodys + cache / 4 * 3;
}

static void faults_go_on(int node)
{
	pid_t cache = fill_with_cache();
	int status = touches(most_of_all(node));

	guest_check(!status && !guest_stat(GROUP "stats", "exhausted"), "stuck-fault-goes-on",
		    "status %#x, exhausted %lld times", status,
		    guest_stat(GROUP "stats", "exhausted"));
	printf("# %lld frames in use were looked at\n", guest_stat(GROUP "stats", "looked"));
	guest_write("lists", "drain");
	kill(cache, SIGKILL);
	waitpid(cache, NULL, 0);
}

static void reserve_is_met(int node)
{
	pid_t cache = fill_with_cache();

	guest_check(!guest_writef(GROUP "reserve", "%lld", most_of_all(node) * GUEST_PAGE),
		    "stuck-reserve-is-met", "%s", guest_status());
	kill(cache, SIGKILL);
	waitpid(cache, NULL, 0);
}

static long long free_kib(int node)
{
	char file[64], key[32];

	snprintf(file, sizeof(file), "/sys/devices/system/node/node%d/meminfo", node);
	snprintf(key, sizeof(key), "Node %d MemFree", node);
	return kernel_number(file, key);
}

/* Pages that a device has fill @node, as they are shared or not. Return: false: nothing can. */
static bool fill_with_stuck(int node, int sharing, pid_t *pinned)
{
	*pinned = pin((free_kib(node) - kernel_zones("cma", node) - (160 << 10)) << 10, sharing);
	if (!*pinned)
		return false;
	guest_group("stuck", node ? "2" : "0");
	if (guest_write(GROUP "exhaust", "fail"))
		guest_die("exhaust: %s", guest_status());
	return true;
}

static void end(pid_t pinned)
{
	guest_ungroup("stuck");
	unpin(pinned);
	guest_write("lists", "drain");
}

int main(void)
{
	/* No list takes x86's ZONE_DMA, which is on node 0. CMA is larger on the last one. */
	int node = kernel_number("/proc/vmstat", "nr_free_cma") > 0 ? 0 : 1;
	char before[4096];
	long long looked;
	pid_t pinned;

	strcpy(before, guest_read("map"));
	guest_run_on(node ? sysconf(_SC_NPROCESSORS_ONLN) - 1 : 0);
	write_map(before);
	guest_write("lists", "drain");
	/* The kernel and page cache get the rest of the node. */
	if (!fill_with_stuck(node, MAP_PRIVATE, &pinned)) {
		guest_skip("stuck", "no io_uring");
		goto out;
	}
	faults_go_on(node);
	/* 1 to 2 of each frame; 64 where each was tried. */
	looked = guest_stat(GROUP "stats", "looked");
	guest_check(looked < 10 * frames_in(512), "stuck-private-is-passed-over",
		    "%lld frames in use were looked at", looked);
	end(pinned);
	if (fill_with_stuck(node, MAP_SHARED, &pinned)) {
		faults_go_on(node);
		reserve_is_met(node);
		end(pinned);
	} else {
		guest_skip("stuck-shared", "shared memory can't be pinned");
	}
out:
	guest_write("lists", "drain");
	guest_check(!guest_take_map(before), "map-is-put-back", "%s", guest_status());
	return guest_exit();
}
