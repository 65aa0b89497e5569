// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * exec: what a whole small program costs, from fork to its end.
 *
 * Forks, execs PROGRAM and waits, several times, and prints the median CPU time
 * of one, the parent's and the child's, in nanoseconds. In a guest under `-icount
 * shift=0` with one CPU these are instructions, the child's in thousands; what
 * either waits for a disk is not counted:
 *
 *	exec [-n TIMES] [-j TASKS_FILE] PROGRAM [ARGUMENT...]
 *
 * -j joins a group first, by writing to its `tasks` file.
 *
 * Output, one line: times first median faults, where `first` is that of the
 * first one, whose lists may have to be filled, and `faults` are the page faults
 * of the median one that read no disk.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_TIMES 1000

struct sample {
	double ns;
	long faults;
};

static void die(const char *what)
{
	fprintf(stderr, "exec: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double of_child(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1e9 +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e3;
}

static void join(const char *file)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, "0\n", 2) != 2)
		die(file);
	close(fd);
}

static struct sample once(char **argv)
{
	struct sample sample;
	struct rusage usage;
	double t = now();
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &usage) < 0)
		die("wait");
	sample.ns = now() - t + of_child(&usage);
	sample.faults = usage.ru_minflt;
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "exec: %s: status %#x\n", argv[0], status);
		exit(1);
	}
	return sample;
}

static int ascending(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

int main(int argc, char **argv)
{
	static struct sample sample[MAX_TIMES];
	long times = 30, i;
	double first;
	int c;

	while ((c = getopt(argc, argv, "+n:j:")) != -1) {
		switch (c) {
		case 'n':
			times = atol(optarg);
			break;
		case 'j':
			join(optarg);
			break;
		default:
			return 2;
		}
	}
	if (optind == argc || times < 1 || times > MAX_TIMES) {
		fprintf(stderr, "usage: exec [-n 1..%d] [-j TASKS_FILE] PROGRAM [ARGUMENT...]\n",
			MAX_TIMES);
		return 2;
	}
	for (i = 0; i < times; i++)
		sample[i] = once(argv + optind);
	first = sample[0].ns;
	qsort(sample, times, sizeof(*sample), ascending);
	printf("times %ld first %.0f exec %.0f faults %ld\n", times, first,
	       sample[times / 2].ns, sample[times / 2].faults);
	return 0;
}
