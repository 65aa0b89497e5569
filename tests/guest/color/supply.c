/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Supply on a machine that has been running (tests/kernels runs this test on full and
 * on fragmented memory, too): a group has all memory of its colours that others can do
 * without, grows only if that does not do, and its faults do not look for it. A reserve
 * is met.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB	(1ul << 20)

/* A member of @group writes @bytes; its exit status. */
static int writes(const char *group, size_t bytes)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		guest_touch(guest_member_memory(group, bytes), bytes);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static long long stat_of(const char *group, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "groups/%s/stats", group);
	return guest_stat(path, key);
}

static void policy(const char *group, const char *exhaust)
{
	char path[64];

	snprintf(path, sizeof(path), "groups/%s/exhaust", group);
	if (guest_write(path, exhaust))
		guest_die("%s: %s", path, guest_status());
}

/* Requests of @group that the CPU's own list did not serve. */
static long long slow_requests(const char *group)
{
	char path[64], line[128], *at;
	const char *text;
	long long sum = 0;

	snprintf(path, sizeof(path), "groups/%s/times", group);
	for (text = guest_read(path); text && *text; ) {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"),
			 text);
		at = strchr(line, ' ');
		if (!strncmp(line, "fault_", 6) && at)
			sum += atoll(at);
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return sum;
}

/* What `soloist run` gives a program: a bank set of its own, more if that is full. */
static void one_set_will_do(void)
{
	int status;

	guest_group("small", NULL);
	if (guest_write("groups/small/auto", "1"))
		guest_die("auto: %s", guest_status());
	policy("small", "grow");
	status = writes("small", 40 * MIB);
	guest_check(!status, "supply-grow-goes-on", "status %#x", status);
	guest_check(!stat_of("small", "grown"), "supply-grows-not-for-memory",
		    "%lld bank sets more for 40 MB in 64",
		    stat_of("small", "grown"));
	guest_ungroup("small");
}

/* Most of four bank sets. */
static void most_of_four(void)
{
	const size_t bytes = 200 * MIB;
	long long pages = bytes / GUEST_PAGE, slow;
	int status;

	guest_group("large", "4-7");
	policy("large", "fail");
	status = writes("large", bytes);
	guest_check(!status, "supply-fail-goes-on", "status %#x", status);
	guest_check(!stat_of("large", "exhausted"), "supply-fail-not-exhausted",
		    "%lld times", stat_of("large", "exhausted"));
	slow = slow_requests("large");
	printf("# of %lld faults %lld went beyond the CPU's list, %lld waited; %lld frames in use were looked at\n",
	       pages, slow, stat_of("large", "waited"),
	       stat_of("large", "looked"));
	/* 1 in 29 where each fault refilled for itself; how many depends on the scheduler. */
	guest_check(slow <= pages / 50, "supply-is-ahead",
		    "%lld of %lld faults went beyond the CPU's list", slow,
		    pages);
	guest_ungroup("large");
}

static void half_a_set_in_reserve(void)
{
	guest_group("timely", "9");
	guest_check(!guest_write("groups/timely/reserve", "32M"),
		    "supply-reserve-is-met", "%s", guest_status());
	guest_check(stat_of("timely", "listed") >=
			    (32ll << 20) / (long long)GUEST_PAGE,
		    "supply-reserve-is-listed", "%lld frames",
		    stat_of("timely", "listed"));
	guest_ungroup("timely");
}

int main(void)
{
	half_a_set_in_reserve();
	one_set_will_do();
	most_of_four();
	return guest_exit();
}
