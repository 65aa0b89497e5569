/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A child whose fork does not end while the module is unloaded and loaded again has the number
 * of a group of the first load. It means nothing in the second: the child would be in a group
 * without a reference to it. Loads differ by a byte, so a test must say which.
 */
#define _GNU_SOURCE
#include "../lib/forking.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void load(long long generation, const char *map)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "rmmod soloist_firmware 2>/dev/null; rmmod soloist && insmod '%s' mmap_abi=1 generation=%lld",
		 getenv("MODULE"), generation);
	if (system(command) || guest_take_map(map))
		guest_die("%s: %s", command, guest_status());
}

/* Its parent ends, and it runs. */
static void end_fork(pid_t parent, pid_t child)
{
	char path[64], state[64] = "";
	int fd, status;

	kill(parent, SIGKILL);
	waitpid(parent, &status, 0);
	snprintf(path, sizeof(path), "/proc/%d/syscall", child);
	/* It waits in pause(); "running" before. */
	while (state[0] < '0' || state[0] > '9') {
		usleep(1000);
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, state, sizeof(state) - 1) < 1)
			guest_die("%s: %s", path, strerror(errno));
		close(fd);
	}
}

int main(void)
{
	static char map[65536];
	long long first, id;
	pid_t parent, child;
	char line[16];

	strcpy(map, guest_read("map"));
	load(0, map);
	first = guest_stat("features", "generation");
	guest_group("before", "1");
	id = atoll(guest_read("groups/before/id"));
	parent = forking("before");
	child = wait_forking(parent);
	if (guest_ungroup("before"))
		guest_die("rmdir: %s", guest_status());
	load(first, map);
	guest_group("after", "1");
	if (atoll(guest_read("groups/after/id")) != id)
		guest_die("group %s, not %lld", guest_read("groups/after/id"), id);
	guest_check(guest_stat("features", "generation") != first, "forking-other-generation",
		    "%lld again", first);
	end_fork(parent, child);
	snprintf(line, sizeof(line), "%d\n", child);
	guest_check(!strstr(guest_read("groups/after/tasks"), line), "forking-child-in-none",
		    "%d is in a group that it never joined", child);
	kill(child, SIGKILL);
	return guest_exit();
}
