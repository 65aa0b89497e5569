/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Any user reads the files of guard/ and of rules, also on a CPU that is stopped most of the
 * time, or while a group goes. Commands and execs do not wait for such a reader.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PERIOD_MS 1000
#define READERS 4

static atomic_bool quit;

/* Reads a file again and again, on CPU 1. */
static void *read_on(void *arg)
{
	char path[128], text[4096];
	int fd;

	snprintf(path, sizeof(path), GUEST_ROOT "/%s", (const char *)arg);
	if (pin_self(1))
		return NULL;
	while (!quit) {
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;	/* a group's, which is gone */
		if (read(fd, text, sizeof(text)) < 0)
			sched_yield();
		close(fd);
	}
	return NULL;
}

static void readers(pthread_t *of, const char *const *files, int n)
{
	quit = false;
	for (int i = 0; i < n; i++)
		if (pthread_create(&of[i], NULL, read_on, (void *)files[i]))
			guest_die("pthread_create");
}

static void readers_end(pthread_t *of, int n)
{
	quit = true;
	for (int i = 0; i < n; i++)
		pthread_join(of[i], NULL);
}

/*
 * The longest of some commands that are refused, so that nothing but a lock is waited for.
 * The file is opened once, for configfs has a name looked up by one at a time.
 */
static void nobody_waits(void)
{
	static const char *const files[READERS] = {
		"guard/cpu1/stats", "guard/cpu1/bandwidth", "guard/settings",
		"guard/cpu2/stats",
	};
	long long until = now_ns() + 12ll * PERIOD_MS * MS, most = 0;
	int late = 0;
	int fd = open(GUEST_ROOT "/guard/settings", O_WRONLY);
	pthread_t of[READERS];

	settings("event " RUNNING "\nperiod_us 1000000\nr_min 64000000000");
	must_limit(1, "6400000000 reclaim=0");	/* a tenth of the time */
	readers(of, files, READERS);
	while (now_ns() < until) {
		long long from = now_ns();

		if (write(fd, "ewma 0", 6) >= 0 || errno != EINVAL)
			guest_die("ewma 0: %m");
		from = now_ns() - from;
		if (from > most)
			most = from;
		late += from > PERIOD_MS * MS / 2;
		usleep(200);
	}
	guest_check(stat_of(1, "stops") > 3, "reader-is-stopped", "%s",
		    stats_of(1));
	printf("# a command waited at most %lld ms\n", most / MS);
	/* The host may take 500 ms of the guest away once. */
	guest_check(late < 2, "no-command-waits", "%d late, %lld ms at most", late,
		    most / MS);
	limit(1, "off");
	readers_end(of, READERS);
	close(fd);
	guard_reset();
}

/* Under KASAN (make check-debug) this shows a name that was freed. */
static void owner_goes(void)
{
	static const char *const files[READERS] = {
		"guard/cpu1/bandwidth", "guard/cpu1/bandwidth",
		"groups/goes/bandwidth", "guard/cpu1/stats",
	};
	pthread_t of[READERS];
	bool good = true;
	int i;

	settings("event page-faults\nperiod_us 10000\nr_min 100000000");
	readers(of, files, READERS);
	for (i = 0; good && i < 100; i++) {
		guest_group("goes", NULL);
		good = !guest_write("groups/goes/bandwidth",
				    "40000000 cpus=1-2") &&
		       strstr(guest_read("guard/cpu1/bandwidth"), "group=goes") &&
		       !guest_ungroup("goes") &&
		       !strcmp(guest_read("guard/cpu1/bandwidth"), "off\n");
	}
	guest_check(good, "owner-goes", "turn %d: %s; %s", i, guest_status(),
		    guest_read("guard/cpu1/bandwidth"));
	readers_end(of, READERS);
	guard_reset();
}

/* ---- rules ---- */

#define HOLDS	300
#define LATE	4
#define LONG	3900	/* bytes of a path, which takes a while to print */

#define PREEMPT	"/sys/kernel/debug/sched/preempt"

/*
 * The kernel asks the rules for the file, then finds that it is no program. It would look for a
 * module that knows it if it were no text.
 */
static void exec_none(void)
{
	execl("./none", "none", NULL);
	if (errno != ENOEXEC)
		guest_die("./none: %m");
}

static int read_rule(void)
{
	const struct sched_param idle = { 0 };
	char text[4096];
	int fd;

	if (pin_self(1) || sched_setscheduler(0, SCHED_IDLE, &idle))
		return 1;
	for (;;) {
		fd = open(GUEST_ROOT "/rules/r/path", O_RDONLY);
		if (fd < 0 || read(fd, text, sizeof(text)) < 0)
			return 1;
		close(fd);
	}
}

/*
 * Stop the reader at any moment, until two execs have ended, or for half a second: the kernel
 * lets it go on after one. Return: how often they had not; no more than LATE.
 */
static int hold_reader(const atomic_long *execs)
{
	const struct sched_param fifo = { .sched_priority = 1 };
	long long until;
	int late = 0;
	long seen;

	if (pin_self(1) || sched_setscheduler(0, SCHED_FIFO, &fifo))
		return LATE;
	for (int i = 0; i < HOLDS && late < LATE; i++) {
		usleep(100 + i % 97);
		seen = *execs;
		until = now_ns() + 500 * MS;
		while (*execs < seen + 2 && now_ns() < until)
			;
		late += *execs < seen + 2;
	}
	return late;
}

static pid_t child(int (*run)(const atomic_long *execs), const atomic_long *execs)
{
	pid_t pid = fork();

	if (!pid)
		_exit(run ? run(execs) : read_rule());
	return pid;
}

/* With a kernel that can be stopped in the middle of a read. */
static void no_exec_waits(void)
{
	atomic_long *execs = mmap(NULL, GUEST_PAGE, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = open("./none", O_WRONLY | O_CREAT, 0755), status;
	char path[LONG + 1] = "/";
	pid_t reader, holder;

	if (execs == MAP_FAILED || fd < 0 || write(fd, "none", 4) != 4 || close(fd))
		guest_die("./none: %m");
	memset(path + 1, 'x', LONG - 1);
	if (mkdir(GUEST_ROOT "/rules/r", 0755) || guest_write("rules/r/path", path) ||
	    guest_write("rules/r/uid", "any") || guest_write("rules/r/enabled", "1"))
		guest_die("rules/r: %s", guest_status());
	reader = child(NULL, NULL);
	holder = child(hold_reader, execs);
	while (!waitpid(holder, &status, WNOHANG)) {
		exec_none();
		++*execs;
	}
	/* The host may take such times of the guest away. */
	guest_check(WIFEXITED(status) && WEXITSTATUS(status) < LATE, "no-exec-waits",
		    "after %ld execs: status %#x", *execs, status);
	printf("# %d of %d times an exec was late\n", WEXITSTATUS(status), HOLDS);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	rmdir(GUEST_ROOT "/rules/r");
}

/* The kernel can be told to, and back to what it was. On PREEMPT_RT its own locks would wait as well. */
static void while_preemptible(void)
{
	char modes[64] = "", *mode;
	FILE *file;

	mount("none", "/sys/kernel/debug", "debugfs", 0, NULL);
	file = fopen(PREEMPT, "r");
	if (file && !fgets(modes, sizeof(modes), file))
		guest_die(PREEMPT);
	if (file)
		fclose(file);
	/* `none (voluntary) full` */
	mode = strchr(modes, '(');
	if (!mode) {
		guest_skip("no-exec-waits", "this kernel is not preempted on demand");
		return;
	}
	guest_set_kernel(PREEMPT, "full");
	no_exec_waits();
	guest_set_kernel(PREEMPT, strtok(mode, "()"));
}

int main(void)
{
	guard_reset();
	pin_self(0);
	while_preemptible();
	nobody_waits();
	owner_goes();
	return guest_exit();
}
