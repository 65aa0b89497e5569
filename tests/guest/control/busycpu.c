/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A CPU that a real-time task has for itself answers nobody (kernel.
 * sched_rt_runtime_us=-1, usual on real-time hosts). An exec that a rule gives
 * colours to, when none are free, must not wait for it, nor any exec after.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPINS_ON	3
#define PATIENCE	20	/* seconds: an exec takes a fraction of one */

static atomic_bool spinning, quit;

/* A page of its own waits in this CPU's batch, so that a drain asks the CPU. */
static void *spin(void *arg)
{
	struct sched_param fifo = { .sched_priority = 50 };
	cpu_set_t cpu;

	(void)arg;
	CPU_ZERO(&cpu);
	CPU_SET(SPINS_ON, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo))
		return "sched_setscheduler";
	guest_touch(guest_map_anon(3 * GUEST_PAGE), 3 * GUEST_PAGE);
	spinning = true;
	while (!quit)
		;
	return NULL;
}

static void nap(void)
{
	struct timespec t = { 0, 20000000 };

	nanosleep(&t, NULL);
}

/* Does running @path end within our patience? */
static bool runs(const char *path)
{
	time_t end = time(NULL) + PATIENCE;
	pid_t pid = fork();
	int status;

	if (!pid) {
		execl(path, path, NULL);
		_exit(127);
	}
	while (time(NULL) < end) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) && !WEXITSTATUS(status);
		nap();
	}
	kill(pid, SIGKILL);
	return false;
}

static void stay_off_that_cpu(void)
{
	cpu_set_t cpus;
	int cpu;

	CPU_ZERO(&cpus);
	for (cpu = 0; cpu < SPINS_ON; cpu++)
		CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

int main(void)
{
	char all[32], cwd[256], path[300];
	pthread_t spinner;

	snprintf(all, sizeof(all), "0-%u", guest_map()->n_bank_sets - 1);
	guest_group("all", all);
	guest_write("groups/all/mode", "exclusive");
	if (system("cp /bin/true ruled"))
		guest_die("cp /bin/true");
	mkdir(GUEST_ROOT "/rules/busy", 0755);
	snprintf(path, sizeof(path), "%s/ruled", getcwd(cwd, sizeof(cwd)));
	if (guest_write("rules/busy/uid", "any") ||
	    guest_write("rules/busy/path", path) ||
	    guest_write("rules/busy/colors", "1") ||
	    guest_write("rules/busy/enabled", "1"))
		guest_die("rule: %s", guest_status());
	stay_off_that_cpu();
	guest_check(runs("./ruled"), "ends-without-the-spinner", "no");
	guest_check(guest_stat("rules/busy/stats", "refused") == 1, "refused",
		    "%s", guest_read("rules/busy/stats"));

	guest_set_kernel("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	pthread_create(&spinner, NULL, spin, NULL);
	while (!spinning)
		nap();
	guest_check(runs("./ruled"), "exec-that-a-rule-names-ends",
		    "it waits for CPU %d", SPINS_ON);
	guest_check(runs("/bin/true"), "other-execs-end", "they wait for it");
	quit = true;
	pthread_join(spinner, NULL);
	guest_set_kernel("/proc/sys/kernel/sched_rt_runtime_us", "950000");
	rmdir(GUEST_ROOT "/rules/busy");
	guest_ungroup("all");
	return guest_exit();
}
