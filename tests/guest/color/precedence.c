/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mbind, set_mempolicy and cpuset stay in force: colours choose within them;
 * an empty intersection is refused in words.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (1ul << 20)

static const char *node_sets(u32 node, char *buf, size_t size)
{
	const struct sol_map *map = guest_map();

	snprintf(buf, size, "%u-%u", node << map->set_bits,
		 ((node + 1) << map->set_bits) - 1);
	return buf;
}

/* Every page of fresh memory is on @node and in the group's sets. */
static void check_node(const char *name, void *p, u32 node)
{
	struct guest_audit sum;
	char sets[64];

	guest_touch(p, BYTES);
	sum = guest_audit_range(p, BYTES, node_sets(node, sets, sizeof(sets)),
				NULL);
	guest_check(sum.in == (long)(BYTES / GUEST_PAGE), name,
		    "%ld on node %u, %ld elsewhere", sum.in, node, sum.out);
}

static int bound(void)
{
	unsigned long one = 2, zero = 1;
	void *p = guest_map_anon(BYTES), *q = guest_map_anon(BYTES);

	if (guest_join("both"))
		guest_die("join: %s", guest_status());
	if (syscall(SYS_mbind, p, BYTES, MPOL_BIND, &one, 64, 0))
		guest_die("mbind: %s", strerror(errno));
	check_node("mbind-within-colors", p, 1);
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &zero, 64))
		guest_die("set_mempolicy: %s", strerror(errno));
	check_node("set_mempolicy-within-colors", q, 0);
	return guest_exit();
}

/* Who may only use another node than its CPU's waits for supply as rarely as others. */
static int far(void)
{
	unsigned long one = 2;
	void *p = guest_map_anon(4 * BYTES);
	long long waited;

	guest_run_on(0);
	if (guest_join("both"))
		guest_die("join: %s", guest_status());
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &one, 64))
		guest_die("set_mempolicy: %s", strerror(errno));
	waited = guest_stat("groups/both/stats", "waited");
	guest_touch(p, 4 * BYTES);
	waited = guest_stat("groups/both/stats", "waited") - waited;
	guest_check(waited < 4 * (long long)(BYTES / GUEST_PAGE) / 8,
		    "bound-elsewhere-is-not-slow", "%lld of %lu faults waited for supply",
		    waited, 4 * BYTES / GUEST_PAGE);
	return guest_exit();
}

static int empty(void)
{
	unsigned long one = 2;
	int err;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &one, 64))
		guest_die("set_mempolicy: %s", strerror(errno));
	err = guest_join("node0");
	guest_check(err < 0 && strlen(guest_status()) > 8,
		    "empty-intersection-refused", "returned %d, '%s'", err,
		    guest_status());
	return guest_exit();
}

static void in_child(int (*test)(void))
{
	pid_t pid = fork();
	int status = 1;

	if (!pid)
		_exit(test());
	waitpid(pid, &status, 0);
	if (status)
		guest_check(false, "precedence-child", "status %#x", status);
}

int main(void)
{
	char sets[64];
	u32 per_node = 1u << guest_map()->set_bits;

	if (guest_map()->n_nodes < 2) {
		guest_skip("precedence", "one memory node");
		return 0;
	}
	snprintf(sets, sizeof(sets), "1,%u", per_node + 1);
	guest_group("both", sets);
	guest_group("node0", "1");
	in_child(bound);
	in_child(far);
	in_child(empty);
	return guest_exit();
}
