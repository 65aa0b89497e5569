/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A colour runs out: `fail` ends the task with a signal (and never hangs),
 * `grow` takes another free colour, `spill` takes any page and counts it.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SET 2u

static u64 capacity(void)
{
	const struct sol_map *map = guest_map();
	u64 frames = 0;
	u32 llc;

	for (llc = 0; llc < map->n_llc; llc++)
		frames += sol_map_cell_frames(map, SET, llc);
	return frames;
}

/* Touch a half more than the colour can hold; report what became of it. */
static int overrun(const char *group, bool populate)
{
	size_t bytes = capacity() * 3 / 2 * GUEST_PAGE;
	pid_t pid = fork();
	volatile int status = 0;

	if (!pid) {
		char *p;

		alarm(300); /* a livelock becomes SIGALRM */
		if (guest_join(group))
			_exit(3);
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			_exit(4);
		if (populate) {
			/*
			 * After the failure there is no page left, also none
			 * for a first write to this process' own: write to
			 * what follows (errno, stack, lazy binding) before.
			 */
			if (madvise(p, GUEST_PAGE, MADV_POPULATE_WRITE))
				_exit(6);
			if (munmap(p, GUEST_PAGE))
				_exit(7);
			errno = 0;
			status = madvise(p + GUEST_PAGE, bytes - GUEST_PAGE,
					 MADV_POPULATE_WRITE);
			munmap(p + GUEST_PAGE, bytes - GUEST_PAGE);
			if (!status)
				_exit(5);
			_exit(errno == ENOMEM || errno == EFAULT ? 0 : 8);
		} else {
			guest_touch(p, bytes);
		}
		_exit(0);
	}
	waitpid(pid, (int *)&status, 0);
	return status;
}

static void group(const char *name, const char *policy)
{
	char path[64], sets[16];

	snprintf(sets, sizeof(sets), "%u", SET);
	snprintf(path, sizeof(path), "groups/%s/exhaust", name);
	guest_group(name, sets);
	if (guest_write(path, policy))
		guest_die("%s: %s", path, guest_status());
}

/* Does the kernel's log say that @group had no page? */
static bool log_names(const char *group)
{
	static char log[1 << 20];
	char line[128];
	/* SYSLOG_ACTION_READ_ALL: from the end, as much as fits. */
	int n = klogctl(3, log, sizeof(log) - 1);

	if (n < 0)
		guest_die("klogctl: %s", strerror(errno));
	log[n] = 0;
	snprintf(line, sizeof(line), "group %s: no free page in its colours",
		 group);
	return strstr(log, line);
}

int main(void)
{
	int status;

	group("fails", "fail");
	status = overrun("fails", false);
	guest_check(WIFSIGNALED(status) && (WTERMSIG(status) == SIGBUS ||
					    WTERMSIG(status) == SIGKILL),
		    "exhaust-fail-signals", "status %#x", status);
	guest_check(guest_stat("groups/fails/stats", "exhausted") > 0,
		    "exhaust-fail-counted", "0");
	guest_check(log_names("fails"), "exhaust-fail-logged", "not a word");
	status = overrun("fails", true);
	guest_check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		    "exhaust-fail-populate-returns", "status %#x", status);
	guest_ungroup("fails");

	group("spills", "spill");
	status = overrun("spills", false);
	guest_check(status == 0, "exhaust-spill-goes-on", "status %#x", status);
	guest_check(guest_stat("groups/spills/stats", "spilled") > 0,
		    "exhaust-spill-counted", "0");
	guest_ungroup("spills");

	group("grows", "grow");
	status = overrun("grows", false);
	guest_check(status == 0, "exhaust-grow-goes-on", "status %#x (%s)",
		    status, guest_status());
	guest_check(guest_stat("groups/grows/stats", "grown") > 0,
		    "exhaust-grow-counted", "0");
	guest_ungroup("grows");
	return guest_exit();
}
