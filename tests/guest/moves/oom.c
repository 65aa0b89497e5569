/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A task that is bound to a node fills it. Frames that a group frees and takes again on
 * another node are of no use to it: the OOM killer comes, rather than to ask for ever.
 */
#define _GNU_SOURCE
#include "moves.h"

#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MB	(1ul << 20)
#define STUCK_S	20	/* that a MiB may take */
#define CHURNERS	3

#define NODE0	"/sys/devices/system/node/node0/"
#define HUGETLB	NODE0 "hugepages/hugepages-2048kB/nr_hugepages"

static void bind_to(int node)
{
	unsigned long nodes = 1ul << node;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 64))
		_exit(2);
}

/* In colour on node 1: frames come to the lists, and go, all the time. */
static void churn(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (guest_join("churn"))
		_exit(2);
	for (;;) {
		char *p = guest_map_anon(MB);

		guest_touch(p, MB);
		munmap(p, MB);
	}
}

/* All of node 0, and more. */
static void fill(void)
{
	if (set_kernel("/proc/self/oom_score_adj", "1000"))
		_exit(2);
	bind_to(0);
	for (;;) {
		char *p = guest_map_anon(MB);

		alarm(STUCK_S);	/* a livelock becomes SIGALRM */
		if (mlock(p, MB))
			_exit(3);
	}
}

static pid_t start(void (*body)(void))
{
	pid_t pid = fork();

	if (!pid) {
		body();
		_exit(1);
	}
	return pid;
}

/* Most of node 0 out of the way: to fill it takes an emulator long. */
static void less_memory(void)
{
	char pages[32];

	snprintf(pages, sizeof(pages), "%ld", meminfo("MemFree") / 2 / 2 * 3 / 4);
	set_kernel(HUGETLB, pages);
}

int main(void)
{
	const struct sol_map *map = guest_map();
	int status = 0;
	double begin;
	char set[16];
	pid_t pid, other[CHURNERS];
	int i;

	if (map->n_nodes < 2 || meminfo("MemTotal") > 4096) {
		guest_skip("oom-bound", "no second node, or too much memory to fill");
		return 0;
	}
	less_memory();
	snprintf(set, sizeof(set), "%u", map->n_bank_sets / map->n_nodes + 3);
	guest_group("churn", set);
	for (i = 0; i < CHURNERS; i++)
		other[i] = start(churn);
	wait_ms(500);
	begin = now_s();
	pid = start(fill);
	waitpid(pid, &status, 0);
	guest_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "oom-bound",
		    "status %#x after %.0f s: the OOM killer did not come", status,
		    now_s() - begin);
	printf("# after %.1f s\n", now_s() - begin);
	guest_check(!waitpid(-1, &status, WNOHANG), "oom-spares-the-group", "status %#x", status);
	for (i = 0; i < CHURNERS; i++) {
		kill(other[i], SIGKILL);
		waitpid(other[i], &status, 0);
	}
	set_kernel(HUGETLB, "0");
	guest_ungroup("churn");
	return guest_exit();
}
