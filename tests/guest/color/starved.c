/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Supply gets no CPU for longer than a task waits for its answers. That says nothing of the
 * colours: tasks get their pages when supply runs again, those too whose frames others take
 * first. Nor does the end of a task that is killed while it waits.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGES		1024
#define SPINS_ON	1
#define SECONDS		12	/* 8 answers are waited for, a second each */
#define MEMBERS		16
#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

/*
 * Have supply's threads run on @cpu alone, with the lowest real-time priority, so that the
 * kernel's server of ordinary tasks gives them nothing; -1: as they were. Return: how many
 * there are.
 */
static int supply_runs_on(int cpu)
{
	struct sched_param param = { .sched_priority = cpu >= 0 };
	struct dirent *at;
	DIR *all = opendir("/proc");
	char path[300], name[32];
	cpu_set_t cpus;
	int n = 0;
	FILE *f;

	CPU_ZERO(&cpus);
	for (int i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &cpus);
	while (all && (at = readdir(all))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", at->d_name);
		f = atoi(at->d_name) ? fopen(path, "r") : NULL;
		if (f && fscanf(f, "%31s", name) == 1 && !strncmp(name, "soloist/", 8))
			n += !sched_setaffinity(atoi(at->d_name), sizeof(cpus), &cpus) &&
			     !sched_setscheduler(atoi(at->d_name),
						 cpu < 0 ? SCHED_OTHER : SCHED_FIFO,
						 &param);
		if (f)
			fclose(f);
	}
	if (all)
		closedir(all);
	return n;
}

static void restore(void)
{
	set_kernel(RT_RUNTIME, "950000");
	supply_runs_on(-1);
}

static void spin(int ready)
{
	struct sched_param fifo = { .sched_priority = 50 };
	time_t end;

	guest_run_on(SPINS_ON);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo) || write(ready, "", 1) != 1)
		_exit(1);
	end = time(NULL) + SECONDS;
	while (time(NULL) < end)
		;
	_exit(0);
}

#define KILLED	"groups/killed/stats"

/* A member of another group, with page tables but few pages, which waits for @go. */
static pid_t victim(const int go[2])
{
	int ready[2], i;
	pid_t pid;
	char c;

	guest_group("killed", "6");
	if (pipe(ready) || guest_write("groups/killed/exhaust", "fail"))
		guest_die("exhaust: %s", guest_status());
	pid = fork();
	if (!pid) {
		char *p = guest_member_memory("killed", PAGES * GUEST_PAGE);

		for (i = 0; i < PAGES; i += 256)
			p[i * GUEST_PAGE] = 1;
		p[(PAGES - 1) * GUEST_PAGE] = 1;
		if (write(ready[1], "", 1) == 1 && read(go[0], &c, 1) == 1)
			guest_touch(p, PAGES * GUEST_PAGE);
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		guest_die("the victim");
	close(ready[0]);
	return pid;
}

/* @pid, which may go on now, is killed while it waits for supply: that exhausts no colour. */
static void kill_waiting(pid_t pid, const int go[2])
{
	long long waited = guest_stat(KILLED, "waited"), n;
	long long before = guest_stat(KILLED, "exhausted") + guest_stat(KILLED, "spilled");
	int status = 0;

	if (write(go[1], "", 1) != 1)
		guest_die("pipe");
	while (guest_stat(KILLED, "waited") == waited && !waitpid(pid, &status, WNOHANG))
		usleep(1000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	guest_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed-while-it-waits",
		    "status %#x", status);
	n = guest_stat(KILLED, "exhausted") + guest_stat(KILLED, "spilled") - before;
	guest_check(!n, "killed-exhausts-nothing", "exhausted and spilled count %lld more", n);
}

static int starve(void)
{
	pid_t spinner, killed, member[MEMBERS];
	int ready[2], go[2], status, spun, bad = 0, i;
	char c;

	guest_run_on(0);
	if (pipe(go))
		guest_die("pipe");
	killed = victim(go);
	guest_group("starved", "5");
	guest_write("lists", "drain");
	if (guest_write("groups/starved/exhaust", "fail"))
		guest_die("exhaust: %s", guest_status());
	if (pipe(ready) || supply_runs_on(SPINS_ON) < 1)
		guest_die("supply has no threads");
	guest_set_kernel(RT_RUNTIME, "-1");
	spinner = fork();
	if (!spinner)
		spin(ready[1]);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		guest_die("the spinner");
	for (i = 0; i < MEMBERS; i++) {
		member[i] = fork();
		if (member[i])
			continue;
		guest_touch(guest_member_memory("starved", 256 * GUEST_PAGE),
			    256 * GUEST_PAGE);
		_exit(0);
	}
	kill_waiting(killed, go);
	for (i = 0; i < MEMBERS; i++) {
		waitpid(member[i], &status, 0);
		bad += status != 0;
	}
	spun = waitpid(spinner, NULL, WNOHANG) == spinner;
	guest_check(!bad, "starved-go-on", "%d of %d tasks were killed", bad, MEMBERS);
	guest_check(spun, "starved-waited", "supply ran beside the spinner");
	if (!spun) {
		kill(spinner, SIGKILL);
		waitpid(spinner, NULL, 0);
	}
	guest_ungroup("starved");
	guest_ungroup("killed");
	return guest_exit();
}

int main(void)
{
	pid_t test = fork();
	int status;

	if (!test)
		_exit(starve());
	waitpid(test, &status, 0);
	restore();
	return !WIFEXITED(status) || WEXITSTATUS(status);
}
