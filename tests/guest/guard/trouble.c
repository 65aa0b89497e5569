/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A CPU with a reservation that can't be made ready for a while: a writer of settings is
 * killed, or no thread can be made. It is regulated again soon, the writer is told, and
 * commands about other CPUs do not suffer.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <signal.h>
#include <sys/wait.h>

#define RATE "20000000 reclaim=0"

static bool comes_back(int cpu)
{
	long long until = now_ns() + 10000 * MS;

	while (stat_of(cpu, "ready") != 1)
		if (now_ns() > until)
			return false;
		else
			sleep_ms(5);
	return true;
}

static pid_t writer(int ewma, int after_ms)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	sleep_ms(after_ms);
	guest_writef("guard/settings", "ewma %d", ewma);
	_exit(0);
}

/*
 * The second writer waits for the first, and has its signal already when its turn comes.
 * One that was done before is not killed.
 */
static void killed_writers(void)
{
	int i, status, killed = 0;
	bool back = true;

	for (i = 0; back && (i < 60 || !killed) && i < 600; i++) {
		pid_t first = writer(i + 1, 0), second = writer(i + 101, 1);

		usleep(1000 + i % 12 * 500);
		kill(second, SIGKILL);
		waitpid(first, NULL, 0);
		waitpid(second, &status, 0);
		killed += WIFSIGNALED(status);
		back = comes_back(1) && comes_back(2);
	}
	guest_check(back && killed, "after-killed-writers",
		    "%d of %d were killed, then %s", killed, i, stats_of(1));
}

static void no_threads(void)
{
	static const char path[] = "/proc/sys/kernel/threads-max";
	char most[32];
	FILE *f = fopen(path, "r");
	int err;

	if (!f || fscanf(f, "%31s", most) != 1)
		guest_die("%s: %m", path);
	fclose(f);
	guest_set_kernel(path, "20");
	err = guest_write("guard/settings", "ewma 100");
	guest_check(!err && strstr(guest_status(), "in force, but CPU 1") &&
		    strstr(guest_status(), "threads-max"), "settings-tell",
		    "%d, %s", err, guest_status());
	guest_check(strstr(guest_read("guard/settings"), "ewma 100\n"),
		    "settings-in-force", "%s", guest_read("guard/settings"));
	guest_check(!limit(2, "off"), "off-of-another", "%s", guest_status());
	err = limit(3, RATE);
	guest_check(err == -EAGAIN && strstr(guest_status(), "CPU 3") &&
		    strstr(guest_status(), "thread"), "names-the-cause",
		    "%d, %s", err, guest_status());
	guest_check(!strcmp(guest_read("guard/cpu3/bandwidth"), "off\n"),
		    "refused-is-off", "%s", guest_read("guard/cpu3/bandwidth"));
	guest_set_kernel(path, most);
	guest_check(comes_back(1), "tries-again", "%s", stats_of(1));
}

int main(void)
{
	guard_reset();
	pin_self(0);
	settings("event page-faults\nperiod_us 10000\nr_min 100000000");
	must_limit(1, RATE);
	must_limit(2, RATE);
	killed_writers();
	no_threads();
	guard_reset();
	return guest_exit();
}
