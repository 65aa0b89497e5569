/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A task whose group is full asks for more, again and again: what that costs the
 * kernel has a bound, whoever it is. What is freed is had at once.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY	65534
#define SET	2u
#define CALLS	20
#define TRIES	8	/* evacuations before a group counts as full, ... */
#define TRY	65536	/* ... of so many looks at most in this group */
#define DRY_NS	100000000ll	/* no pass is asked for that long, supply.c */

static long frames(void)
{
	const struct sol_map *map = guest_map();
	long n = 0;
	u32 llc;

	for (llc = 0; llc < map->n_llc; llc++)
		n += sol_map_cell_frames(map, SET, llc);
	return n;
}

static long long looked(void)
{
	return guest_stat("groups/full/stats", "looked");
}

/* ---- a task of nobody's that does as it is told ---- */

static int order[2], answer[2];

/* It writes to nothing that it had not written to before. */
static void obey(char *p)
{
	struct {
		size_t from, bytes;
		int advice;
	} what;
	char result;

	while (read(order[0], &what, sizeof(what)) == sizeof(what)) {
		result = madvise(p + what.from, what.bytes, what.advice) ?
			 errno : 0;
		if (write(answer[1], &result, 1) != 1)
			break;
	}
	_exit(0);
}

static pid_t servant(size_t bytes)
{
	pid_t pid;
	char *p;

	if (pipe(order) || pipe(answer))
		guest_die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid) {
		close(order[0]);
		close(answer[1]);
		return pid;
	}
	close(order[1]);
	p = guest_map_anon(bytes);
	if (guest_join("full") || setuid(NOBODY))
		_exit(1);
	errno = 0;	/* written to, that is */
	obey(p);
	return 0;
}

/* 0, or the errno of the servant's madvise(). */
static int advise(size_t from, size_t bytes, int advice)
{
	const struct {
		size_t from, bytes;
		int advice;
	} what = { from, bytes, advice };
	char result;

	if (write(order[1], &what, sizeof(what)) != sizeof(what) ||
	    read(answer[0], &result, 1) != 1)
		guest_die("it ended");
	return result;
}

/* ---- */

static void again_and_again(size_t bytes, long all)
{
	long long before = looked(), first, now, from, sum, passes;
	int i, fails = 0, free_of_cost = 0;

	guest_check(advise(0, bytes, MADV_POPULATE_WRITE), "full-fails",
		    "it does not");
	first = looked() - before;
	from = now_ns();
	sum = looked();
	for (i = 0; i < CALLS; i++) {
		before = looked();
		fails += !!advise(0, bytes, MADV_POPULATE_WRITE);
		now = looked();
		free_of_cost += now == before;
	}
	sum = now - sum;
	/* One that ran when the first of them began, and one each DRY_NS. */
	passes = 2 + (now_ns() - from) / DRY_NS;
	printf("# %ld frames, the first call looked at %lld, %d later ones at %lld in %lld passes at most\n",
	       all, first, CALLS, sum, passes);
	guest_check(fails == CALLS, "full-fails-again", "%d of %d", fails,
		    CALLS);
	guest_check(first > 0 && first <= (TRIES + 1) * TRY,
		    "full-first-call-bounded", "%lld looks", first);
	guest_check(sum <= passes * TRY, "full-calls-bounded", "%lld looks in %lld passes",
		    sum, passes);
	guest_check(free_of_cost >= CALLS / 2, "full-calls-without-a-look",
		    "%d of %d", free_of_cost, CALLS);
}

/* Pages that the task frees are those it gets. */
static void what_is_freed(size_t bytes)
{
	const size_t part = 64 * GUEST_PAGE;

	advise(0, part, MADV_DONTNEED);
	guest_check(!advise(0, part / 2, MADV_POPULATE_WRITE),
		    "full-then-freed", "it is not had");
	guest_check(advise(0, bytes, MADV_POPULATE_WRITE), "full-again",
		    "it does not");
}

int main(void)
{
	long all = frames();
	size_t bytes = (size_t)all * GUEST_PAGE * 5 / 4;
	struct rusage used;
	char sets[16];
	int status;
	pid_t pid;

	snprintf(sets, sizeof(sets), "%u", SET);
	guest_group("full", sets);
	pid = servant(bytes);
	if (advise(0, GUEST_PAGE, MADV_POPULATE_WRITE))
		guest_die("not one page");
	again_and_again(bytes, all);
	what_is_freed(bytes);
	/* Its own end may need a page more, of the C library's text. */
	kill(pid, SIGKILL);
	wait4(pid, &status, 0, &used);
	guest_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "full-task",
		    "it ended before, status %#x", status);
	printf("# %ld.%03ld s of the kernel's in all\n", used.ru_stime.tv_sec,
	       used.ru_stime.tv_usec / 1000);
	guest_ungroup("full");
	return guest_exit();
}
