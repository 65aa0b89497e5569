/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A removed group whose tasks have ended leaves nothing behind: pages that an
 * idle CPU has in a batch for the LRU lists come back within seconds, and
 * another map is taken.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 3
#define TRIES 40	/* of 100 ms */

/* A few pages from each CPU, which then has nothing more to do. */
static void leave_pages(int cpus)
{
	int cpu;

	if (guest_join("leaver"))
		guest_die("join: %s", guest_status());
	for (cpu = cpus - 1; cpu >= 0; cpu--) {
		guest_run_on(cpu);
		guest_touch(guest_map_anon(PAGES * GUEST_PAGE),
			    PAGES * GUEST_PAGE);
	}
	_exit(0);
}

int main(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), tries, err = 0, status;
	static char map[65536];
	pid_t pid;

	strcpy(map, guest_read("map"));
	guest_group("leaver", "3");
	pid = fork();
	if (!pid)
		leave_pages(cpus);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		guest_die("the child: status %#x", status);
	if (guest_ungroup("leaver"))
		guest_die("rmdir: %s", guest_status());
	for (tries = 0; tries < TRIES; tries++) {
		usleep(100000);
		err = guest_write("map", map);
		if (!err)
			break;
	}
	guest_check(!err, "all-pages-are-back", "after %d ms: %s", TRIES * 100,
		    guest_status());
	return guest_exit();
}
