/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Everything at once: groups made, coloured, joined and removed by some, while
 * others fork, execute what rules match, and call mmap() for colours. Errors
 * are expected; an oops, a hang or a group left behind is not.
 *
 *	chaos [SECONDS]
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"
#include "../../../kernel/uapi/soloist.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS	6
#define NAMES	5

static const char *const values[][2] = {
	{ "bank_set", "0-1" }, { "bank_set", "1,3" }, { "bank_set", "" },
	{ "dram_bank", "0" }, { "llc_color", "0" }, { "llc_color", "" },
	{ "node", "0" }, { "auto", "1" }, { "auto", "2 realtime" },
	{ "mode", "exclusive" }, { "mode", "shareable" },
	{ "exhaust", "grow" }, { "exhaust", "spill" }, { "exhaust", "fail" },
	{ "reserve", "64K" }, { "reserve", "0" },
	{ "tasks", "0" }, { "procs", "0" }, { "tasks", "0" }, { "tasks", "1x" },
};

static void touch_some(void)
{
	char *p = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int at = 0; p != MAP_FAILED && at < 1 << 17; at += 4096)
		p[at] = 1;
	munmap(p, 1 << 17);
}

static void child(void)
{
	pid_t pid = fork();

	if (!pid) {
		touch_some();
		execl("./chaos-true", "x", "exit", NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void colors(void)
{
	static const int modes[] = {
		SET_MEM_COLOR, CLEAR_MEM_COLOR, SET_LLC_COLOR, CLEAR_LLC_COLOR,
		COLOR_ON, COLOR_OFF, 7 << COLOR_MODE_SHIFT,
	};
	long arg = modes[rand() % 7] | rand() % 4;

	mmap((void *)arg, rand() % 3 ? 0 : 4096, PROT_READ | COLOR_ALLOC,
	     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* One random act on a random group. */
static void act(void)
{
	const char *const *v = values[rand() % (sizeof(values) /
						sizeof(*values))];
	char path[256];

	snprintf(path, sizeof(path), GUEST_ROOT "/groups/chaos%d",
		 rand() % NAMES);
	switch (rand() % 8) {
	case 0:
		mkdir(path, 0755);
		break;
	case 1:
		rmdir(path);
		break;
	case 2:
		child();
		break;
	case 3:
		colors();
		break;
	case 4:
		strcat(path, "/stats");
		guest_read(path + sizeof(GUEST_ROOT));
		break;
	default:
		snprintf(path + strlen(path), 32, "/%s", v[0]);
		guest_write(path + sizeof(GUEST_ROOT), v[1]);
		touch_some();
	}
}

/* The policy `fail` kills a worker whose colours are gone: begin again. */
static void worker(int seed, time_t until)
{
	srand(seed);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (time(NULL) < until)
		act();
	_exit(0);
}

static void run(time_t until)
{
	int i, status, killed = 0, seed = 1;

	for (i = 0; i < WORKERS; i++)
		if (!fork())
			worker(seed + i, until);
	seed += WORKERS;
	while (wait(&status) > 0) {
		if (!WIFSIGNALED(status))
			continue;
		killed++;
		if (time(NULL) < until && !fork())
			worker(seed++, until);
	}
	guest_check(true, "chaos-survived", "%d", killed);
}

/*
 * @groups: how many others had made before. What CPUs keep of tasks that ended comes back by
 * itself within seconds.
 */
static void clean(long long groups)
{
	char path[64];
	int i;

	for (i = 0; i < NAMES; i++) {
		snprintf(path, sizeof(path), "chaos%d", i);
		guest_ungroup(path);
	}
	rmdir(GUEST_ROOT "/rules/chaos");
	mmap((void *)COLOR_OFF, 4096, PROT_READ | COLOR_ALLOC,
	     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 100; i++) {
		if (guest_stat("stats", "groups") == groups &&
		    !guest_stat("stats", "implicit") &&
		    !guest_stat("stats", "removed"))
			break;
		usleep(100000);
	}
	guest_check(i < 100, "chaos-nothing-left",
		    "%lld groups, %lld implicit, %lld removed, %lld frames used",
		    guest_stat("stats", "groups"),
		    guest_stat("stats", "implicit"),
		    guest_stat("stats", "removed"), guest_stat("stats", "used"));
}

int main(int argc, char **argv)
{
	long long groups = guest_stat("stats", "groups");
	int seconds = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 10;

	if (argc == 2 && !strcmp(argv[1], "exit"))
		return 0;
	if (symlink("/proc/self/exe", "./chaos-true"))
		guest_die("symlink: %s", strerror(errno));
	mkdir(GUEST_ROOT "/rules/chaos", 0755);
	guest_write("rules/chaos/path", "*/chaos*");
	guest_write("rules/chaos/uid", "any");
	if (guest_write("rules/chaos/enabled", "1"))
		guest_die("rule: %s", guest_status());
	run(time(NULL) + seconds);
	clean(groups);
	return guest_exit();
}
