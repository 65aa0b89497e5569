/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Epochs of random acts by all workers at once; each begins and ends with the
 * module unloaded, no group left and the machine's memory back.
 *
 *	fuzz [-s SEED] [-e EPOCH] [-n STEPS] [-w WORKER] [-v] [-o] -m MODULE -M MAP MINUTES
 *
 * -e begins with that epoch; -w: that worker alone; -v: acts are told before
 * they are done; -o: without the module, to see what is the kernel's own. The exit status is 1 for a group, a task or memory that stays.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ACTS	64
/*
 * Without any step. 180 were too few on a debug kernel that had half a processor:
 * three workers stood in write-root, where they fill all lists one after the other
 * (a guess; nothing told their stacks then).
 */
#define HANG_S	600

struct shared *fuzz;

static struct told {
	struct {
		unsigned int tried, done;
	} of[ACTS];
} *told;

static uint64_t seed;
static unsigned int steps = 400, only = FUZZ_WORKERS;

static const struct act *const lists[] = {
	control_acts, memory_acts, task_acts, machine_acts,
};

static const struct act *acts[ACTS];
static unsigned int n_acts, weights;

static void collect(void)
{
	for (unsigned int i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (const struct act *a = lists[i]; a->name; a++) {
			acts[n_acts++] = a;
			weights += a->weight;
		}
}

static void act(struct draw *d, unsigned int worker, unsigned int step)
{
	unsigned int at = draw(d, weights), i = 0;

	while (at >= acts[i]->weight)
		at -= acts[i++]->weight;
	if (fuzz->verbose) {
		printf("worker %u step %u: %s\n", worker, step, acts[i]->name);
		fflush(stdout);
	}
	fuzz->now[worker] = acts[i]->name;
	__atomic_add_fetch(&told->of[i].tried, 1, __ATOMIC_RELAXED);
	if (acts[i]->run(d))
		__atomic_add_fetch(&told->of[i].done, 1, __ATOMIC_RELAXED);
}

/* From the step after that which ended it. */
static void work(unsigned int worker, unsigned int epoch)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	put("/proc/self/oom_score_adj", "500", 0);
	signal(SIGPIPE, SIG_IGN);
	while (fuzz->step[worker] < steps) {
		unsigned int step = fuzz->step[worker]++;
		struct draw d;

		draw_begin(&d, seed, epoch, worker, step);
		act(&d, worker, step);
	}
	_exit(0);
}

static void start(unsigned int worker, unsigned int epoch)
{
	pid_t pid = fork();

	if (!pid) {
		fuzz->pid[worker] = getpid();
		work(worker, epoch);
	}
	fuzz->pid[worker] = pid;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static unsigned int done_steps(void)
{
	unsigned int sum = 0;

	for (int i = 0; i < FUZZ_WORKERS; i++)
		sum += fuzz->step[i];
	return sum;
}

/* Where each worker sleeps; a debug kernel has no sysrq that tells. */
static void print_stacks(void)
{
	char path[32];

	for (int i = 0; i < FUZZ_WORKERS; i++) {
		snprintf(path, sizeof(path), "/proc/%d/stack", fuzz->pid[i]);
		printf("worker %d:\n%s", i, get(path));
	}
	fflush(stdout);
}

/* Every task's stack into the kernel's log, which the host keeps. */
static void hung(unsigned int epoch)
{
	printf("FAIL hang: epoch %u of seed %llu:", epoch,
	       (unsigned long long)seed);
	for (int i = 0; i < FUZZ_WORKERS; i++)
		printf(" %s (step %u)", fuzz->now[i] ?: "-", fuzz->step[i]);
	printf("\n");
	print_stacks();
	put("/proc/sys/kernel/sysrq", "1", 0);
	put("/proc/sys/kernel/printk", "7", 0);
	put("/proc/sysrq-trigger", "w", 0);
	put("/proc/sysrq-trigger", "l", 0);
	sleep(5);
	put("/proc/sysrq-trigger", "t", 0);
	sleep(10);
	_exit(1);
}

static void epoch_of(unsigned int epoch)
{
	unsigned int i, last = 0, left = 0;
	double moved = now();

	memset(fuzz->step, 0, sizeof(fuzz->step));
	for (i = 0; i < FUZZ_WORKERS; i++)
		if (only == FUZZ_WORKERS || only == i) {
			start(i, epoch);
			left++;
		}
	while (left) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		for (i = 0; pid > 0 && i < FUZZ_WORKERS; i++) {
			if (fuzz->pid[i] != pid)
				continue;
			if (WIFSIGNALED(status) && fuzz->step[i] < steps) {
				fuzz->killed++;
				start(i, epoch);
			} else {
				left--;
			}
			break;
		}
		if (pid > 0)
			continue;
		usleep(20000);
		machine_thaw();
		if (done_steps() != last) {
			last = done_steps();
			moved = now();
		} else if (now() - moved > HANG_S) {
			hung(epoch);
		}
	}
}

/* ---- after an epoch ---- */

static void no_children(unsigned int epoch)
{
	double until = now() + HANG_S;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (pid)
			continue;
		machine_thaw();
		usleep(10000);
		if (now() > until)
			hung(epoch);
	}
}

/* What CPUs keep of tasks that ended comes back by itself. */
static bool nothing_left(unsigned int epoch)
{
	const char *stats = FUZZ_ROOT "/stats";

	for (int i = 0; i < 300; i++) {
		empty(FUZZ_ROOT "/groups");
		empty(FUZZ_ROOT "/rules");
		if (get_key(stats, "groups") <= 0 &&
		    get_key(stats, "implicit") <= 0 &&
		    get_key(stats, "removed") <= 0)
			return true;
		usleep(100000);
	}
	printf("FAIL left: epoch %u of seed %llu: %ld groups, %ld implicit, %ld removed, %ld frames used (%ld kB in the swap cache)\n",
	       epoch, (unsigned long long)seed, get_key(stats, "groups"),
	       get_key(stats, "implicit"), get_key(stats, "removed"),
	       get_key(stats, "used"), get_key("/proc/meminfo", "SwapCached"));
	return false;
}

/*
 * As tests/guest/lib/memfree.sh; pages that went offline are gone for good, and so is a block that
 * has some and went offline.
 */
static long free_kb(void)
{
	static long total;
	const char *at;
	long kb;

	sync();
	put("/proc/sys/vm/drop_caches", "3", 0);
	sleep(1);
	kb = get_key("/proc/meminfo", "MemFree");
	kb += get_key("/proc/meminfo", "HardwareCorrupted");
	for (at = get("/proc/zoneinfo"); (at = strstr(at, " count:")); at++)
		kb += 4 * strtol(at + 7, NULL, 10);
	if (!total)
		total = get_key("/proc/meminfo", "MemTotal");
	return kb + total - get_key("/proc/meminfo", "MemTotal");
}

static bool memory_back(unsigned int epoch, long before)
{
	long after = 0;

	for (int i = 0; i < 5; i++) {
		after = free_kb();
		if ((before - after) * 100 <= before * 2)
			return true;
		put("/proc/sys/vm/compact_memory", "1", 0);
	}
	printf("FAIL memory: epoch %u of seed %llu: %ld kB free before, %ld after\n",
	       epoch, (unsigned long long)seed, before, after);
	printf("%s", get("/proc/meminfo"));
	return false;
}

static void clean(void)
{
	char path[64];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), FUZZ_DIR "/file%d", i);
		unlink(path);
	}
}

static bool one(unsigned int epoch, long before)
{
	struct draw d;
	char params[32];
	bool good;
	int err;

	draw_begin(&d, seed, epoch, FUZZ_WORKERS, 0);
	snprintf(params, sizeof(params), "mmap_abi=%u", machine_abi(&d));
	err = machine_load(params);
	if (err) {
		printf("FAIL load: epoch %u of seed %llu: %s\n", epoch,
		       (unsigned long long)seed, strerror(-err));
		return false;
	}
	epoch_of(epoch);
	no_children(epoch);
	good = machine_restore();
	clean();
	good &= nothing_left(epoch);
	err = machine_unload(2000);
	if (err && err != -ENOENT) {
		printf("FAIL unload: epoch %u of seed %llu: %s\n", epoch,
		       (unsigned long long)seed, strerror(-err));
		return false;
	}
	return memory_back(epoch, before) && good && !fuzz->livelocks;
}

static void tell(void)
{
	for (unsigned int i = 0; i < n_acts; i++)
		printf("%-16s %8u tried %8u done\n", acts[i]->name,
		       told->of[i].tried, told->of[i].done);
}

static void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("fuzz");
		exit(1);
	}
	return p;
}

static void read_map(const char *path)
{
	const char *text = get(path);

	fuzz->map_len = strlen(text);
	if (!fuzz->map_len || fuzz->map_len >= sizeof(fuzz->map)) {
		fprintf(stderr, "fuzz: %s: no map\n", path);
		exit(2);
	}
	memcpy(fuzz->map, text, fuzz->map_len);
}

int main(int argc, char **argv)
{
	unsigned int epoch = 0, first;
	double until;
	long before;
	int c, bad = 0;

	/* What acts execute. */
	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	fuzz = shared_memory(sizeof(*fuzz));
	told = shared_memory(sizeof(*told));
	while ((c = getopt(argc, argv, "s:e:n:w:vom:M:")) != -1)
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'e':
			epoch = atoi(optarg);
			break;
		case 'n':
			steps = atoi(optarg);
			break;
		case 'w':
			only = atoi(optarg);
			break;
		case 'v':
			fuzz->verbose = true;
			break;
		case 'o':
			fuzz->without = true;
			break;
		case 'm':
			snprintf(fuzz->module, sizeof(fuzz->module), "%s", optarg);
			break;
		case 'M':
			read_map(optarg);
			break;
		default:
			return 2;
		}
	if (optind + 1 != argc || !fuzz->map_len || !fuzz->module[0]) {
		fprintf(stderr, "usage: fuzz [-s SEED] [-e EPOCH] [-n STEPS] [-w WORKER] [-v] [-o] -m MODULE -M MAP MINUTES\n");
		return 2;
	}
	collect();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	put("/proc/self/oom_score_adj", "-1000", 0);
	until = now() + atof(argv[optind]) * 60;
	before = free_kb();
	first = epoch;
	do {
		double began = now();

		if (!one(epoch, before))
			bad = 1;
		printf("epoch %u of seed %llu: %u steps, %.0f s\n", epoch,
		       (unsigned long long)seed, done_steps(), now() - began);
		fflush(stdout);
		epoch++;
	} while (!bad && now() < until);
	tell();
	printf("%u epochs of seed %llu from %u on, %u workers killed: %s\n",
	       epoch - first, (unsigned long long)seed, first, fuzz->killed,
	       bad ? "FAILED" : "nothing found");
	return bad;
}
