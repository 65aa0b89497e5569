// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * load: faults and frees on many CPUs, marked for plugin.c.
 *
 *	load SET CPUS GROUPS [ROOT]
 *	load SET control
 *
 * A process on each CPU, and as many more as make one for each group of
 * ROOT/groups (no ROOT: uncoloured); neighbours share. Each touches PAGES
 * pages and gives them back, some rounds to fill lists and caches, then the
 * rounds that count, once all are that far. Those of one CPU take turns, a
 * CHUNK of pages each. The control interrupts another CPU at each event, so that
 * it is known that the plugin sees it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096ul
#define PAGES	128ul
#define CHUNK	32ul
#define FREED	4ul	/* few, so that no tick falls into most */
#define WARM	6
#define ROUNDS	4
#define MAGIC	0x536f6c6f436f756eull

static int set;

enum { NOTHING, FAULTS, FREES };

static volatile uint64_t mark_at;
static unsigned int *ready;

static void mark(int phase)
{
	mark_at = MAGIC + (phase ? 2 * set + phase : 0);
}

static void round_of(volatile char *at, int counts)
{
	unsigned long i, k;

	for (i = 0; i < PAGES; i += CHUNK) {
		if (counts)
			mark(FAULTS);
		for (k = i; k < i + CHUNK; k++)
			at[k * PAGE] = 1;
		mark(NOTHING);
		sched_yield();
	}
	for (i = 0; i < PAGES; i += FREED) {
		if (counts)
			mark(FREES);
		madvise((char *)at + i * PAGE, FREED * PAGE, MADV_DONTNEED);
		mark(NOTHING);
		if (i % CHUNK == CHUNK - FREED)
			sched_yield();
	}
}

static void wait_for_all(unsigned int n)
{
	__atomic_add_fetch(ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < n)
		usleep(2000);
}

static void on_cpu(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static int worker(unsigned int cpu, unsigned int n, const char *tasks)
{
	volatile char *at;
	int fd;

	on_cpu(cpu);
	if (tasks) {
		fd = open(tasks, O_WRONLY);
		if (fd < 0 || write(fd, "0\n", 2) != 2)
			return 1;
		close(fd);
	}
	at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return 1;
	madvise((void *)at, PAGES * PAGE, MADV_NOHUGEPAGE);
	for (int r = 0; r < WARM; r++)
		round_of(at, 0);
	wait_for_all(n);
	for (int r = 0; r < ROUNDS; r++)
		round_of(at, 1);
	/* No end of one is in another's faults. */
	wait_for_all(2 * n);
	return 0;
}

static void *runs(void *enough)
{
	on_cpu(1);
	while (!__atomic_load_n((int *)enough, __ATOMIC_RELAXED))
		;
	return NULL;
}

static int control(void)
{
	static int enough;
	pthread_t other;

	on_cpu(0);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ||
	    pthread_create(&other, NULL, runs, &enough))
		return 1;
	for (int i = 0; i < 50; i++) {
		usleep(20000);
		mark(FREES);
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		mark(NOTHING);
	}
	__atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
	return pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
	unsigned int cpus, groups, n, i, bad = 0;
	int status;

	if (argc == 3 && !strcmp(argv[2], "control")) {
		set = atoi(argv[1]);
		return control();
	}
	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: load SET CPUS GROUPS [ROOT]\n");
		return 2;
	}
	set = atoi(argv[1]);
	cpus = atoi(argv[2]);
	groups = atoi(argv[3]);
	n = cpus > groups ? cpus : groups;
	ready = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!cpus || !groups || ready == MAP_FAILED)
		return 2;
	for (i = 0; i < n; i++) {
		char tasks[256];

		snprintf(tasks, sizeof(tasks), "%s/groups/c%u/tasks", argc > 4 ? argv[4] : "",
			 i * groups / n);
		if (!fork())
			_exit(worker(i * cpus / n, n, argc > 4 ? tasks : NULL));
	}
	for (i = 0; i < n; i++)
		bad |= wait(&status) < 0 || status;
	return bad;
}
