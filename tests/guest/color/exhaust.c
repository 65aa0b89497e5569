/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A colour runs out: `fail` ends the task with a signal (and never hangs),
 * `grow` takes another free colour, `spill` takes any page and counts it. What
 * others have in the colour moves out of the way first, and what was reserved
 * stays for whom it was; no other CPU is interrupted. A group that is removed
 * meanwhile is no reason to end anybody.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
		char *p = guest_member_memory(group, bytes);

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

static bool log_has(const char *text)
{
	static char log[1 << 20];
	/* SYSLOG_ACTION_READ_ALL: from the end, as much as fits. */
	int n = klogctl(3, log, sizeof(log) - 1);

	if (n < 0)
		guest_die("klogctl: %s", strerror(errno));
	log[n] = 0;
	return strstr(log, text);
}

/* Does the kernel's log say that @group had no page? */
static bool log_names(const char *group)
{
	char line[128];

	snprintf(line, sizeof(line), "group %s: no free page in its colours",
		 group);
	return log_has(line);
}

/*
 * Uncoloured memory lies in all frames but a few; then a group that says `fail`
 * wants half of its colour: what is in the way moves.
 */
static void evacuate(void)
{
	size_t bytes = capacity() / 2 * GUEST_PAGE, n = 0, most;
	const size_t step = 1 << 20;
	struct rusage used;
	long long waits;
	char *others;
	long *pauses;
	int status;
	pid_t pid;

	/* Leave as much as the colour wants, and a reserve for the kernel. */
	most = sysconf(_SC_PHYS_PAGES) * GUEST_PAGE;
	others = mmap(NULL, most, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pauses = mmap(NULL, GUEST_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (others == MAP_FAILED || pauses == MAP_FAILED)
		guest_die("mmap");
	madvise(others, most, MADV_NOHUGEPAGE);
	while (n + step <= most &&
	       sysconf(_SC_AVPHYS_PAGES) * GUEST_PAGE > 2 * bytes + (96ul << 20)) {
		guest_touch(others + n, step);
		n += step;
	}
	pid = fork();
	if (!pid) {
		guest_touch(guest_member_memory("patient", bytes), bytes);
		getrusage(RUSAGE_SELF, &used);
		*pauses = used.ru_nvcsw;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	guest_check(status == 0, "exhaust-fail-evacuates-first",
		    "status %#x, evacuated %lld", status,
		    guest_stat("stats", "evacuated"));
	/*
	 * A tenth of a second each, where each time one frame moved it was 1,104. A wait
	 * for supply is no pause: it ends with the first frames. Nor is one at the task's
	 * end, for a lock of memory that it shares with its parent, and that supply moves.
	 */
	waits = guest_stat("groups/patient/stats", "waited");
	guest_check(*pauses - waits < 100, "exhaust-evacuates-without-pauses",
		    "%ld pauses and %lld waits for %lld frames",
		    *pauses - (long)waits, waits, guest_stat("stats", "evacuated"));
	munmap(others, most);
	munmap(pauses, GUEST_PAGE);
}

/* Shrinkers at work, as on a full machine, until it is killed. */
static pid_t shrinking(void)
{
	pid_t pid = fork();

	while (!pid)
		guest_set_kernel("/proc/sys/vm/drop_caches", "2");
	return pid;
}

/* The shrinkers get all they want; what was reserved stays, from when it came. */
static void reserve_stays(void)
{
	long long least = LLONG_MAX, listed;
	pid_t shrinker;
	int i;

	guest_group("kept", "3");
	shrinker = shrinking();
	for (i = 0; i < 5; i++) {
		if (guest_write("groups/kept/reserve", "16M"))
			guest_die("reserve: %s", guest_status());
		listed = guest_stat("groups/kept/stats", "listed");
		least = listed < least ? listed : least;
		guest_write("groups/kept/reserve", "0");
		guest_write("lists", "drain");
	}
	guest_write("groups/kept/reserve", "16M");
	kill(shrinker, SIGKILL);
	waitpid(shrinker, NULL, 0);
	guest_set_kernel("/proc/sys/vm/drop_caches", "2");
	listed = guest_stat("groups/kept/stats", "listed");
	guest_check(least * (long long)GUEST_PAGE >= 16 << 20 &&
			    listed * (long long)GUEST_PAGE >= 16 << 20,
		    "reserve-is-not-shrunk", "%lld frames listed, at least %lld",
		    listed, least);
	guest_ungroup("kept");
}

/* A task looks for its last page in colour, in vain; then its group goes. */
static void removed_meanwhile(void)
{
	size_t bytes = capacity() * 3 / 2 * GUEST_PAGE, at, before = 0;
	volatile size_t *progress;
	int status, quiet = 0;
	pid_t pid;
	char *p;

	progress = mmap(NULL, GUEST_PAGE, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED)
		guest_die("mmap");
	group("leaves", "fail");
	pid = fork();
	if (!pid) {
		p = guest_member_memory("leaves", bytes);
		for (at = 0; at < bytes; at += GUEST_PAGE) {
			p[at] = 1;
			*progress = at;
		}
		_exit(0);
	}
	/* It waits some tenths of a second for what may move. */
	while (quiet < 5 && !waitpid(pid, &status, WNOHANG)) {
		usleep(20000);
		quiet = *progress && *progress == before ? quiet + 1 : 0;
		before = *progress;
	}
	if (quiet < 5)
		guest_die("it did not wait: %zu of %zu bytes, status %#x",
			  before, bytes, status);
	guest_ungroup("leaves");
	waitpid(pid, &status, 0);
	guest_check(status == 0, "exhaust-removed-meanwhile",
		    "status %#x after %zu of %zu bytes, %zu at removal", status,
		    *progress, bytes, before);
	/* Whose last group it was may live through a refusal; it is one. */
	guest_check(!log_names("leaves"), "exhaust-removed-refuses-nobody",
		    "a group without colours was exhausted");
}

/* Calls between CPUs while a task in no group writes as much. */
static long calls_without_group(void)
{
	size_t bytes = capacity() * 3 / 2 * GUEST_PAGE;
	long before = guest_calls(-1);
	pid_t pid = fork();

	if (!pid) {
		guest_touch(guest_map_anon(bytes), bytes);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return guest_calls(-1) - before;
}

int main(void)
{
	long before, most, least = LONG_MAX;
	int status, i;

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
	guest_check(!log_has("VM_FAULT_OOM leaked"), "exhaust-fail-no-huh",
		    "the kernel wonders about VM_FAULT_OOM");
	guest_ungroup("fails");
	reserve_stays();

	group("spills", "spill");
	status = overrun("spills", false);
	guest_check(status == 0, "exhaust-spill-goes-on", "status %#x", status);
	guest_check(guest_stat("groups/spills/stats", "spilled") > 0,
		    "exhaust-spill-counted", "0");
	guest_ungroup("spills");

	/* The kernel's own calls come with time: on a slow host the least of some. */
	most = 100 + calls_without_group();
	printf("# %ld calls between CPUs are allowed\n", most);
	for (i = 0; i < 4 && least >= most; i++) {
		group("grows", "grow");
		before = guest_calls(-1);
		status = overrun("grows", false);
		before = guest_calls(-1) - before;
		printf("# %ld calls between CPUs while growing\n", before);
		least = before < least ? before : least;
		guest_check(status == 0, "exhaust-grow-goes-on",
			    "status %#x (%s)", status, guest_status());
		guest_check(guest_stat("groups/grows/stats", "grown") > 0,
			    "exhaust-grow-counted", "0");
		guest_ungroup("grows");
	}
	guest_check(least < most, "exhaust-interrupts-nobody",
		    "%ld calls between CPUs", least);

	group("patient", "fail");
	evacuate();
	guest_ungroup("patient");
	/* Last: what its task frees is not all free at once. */
	removed_meanwhile();
	return guest_exit();
}
