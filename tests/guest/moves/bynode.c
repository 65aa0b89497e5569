/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Moves that the user asks for: mbind, move_pages and migrate_pages go to the
 * node asked for, in the group's colours there; where it has none there, the
 * page goes all the same and is counted.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "moves.h"

#define PAGES 512ul
#define BYTES (PAGES * GUEST_PAGE)
#define MPOL_BIND 2
#define MPOL_INTERLEAVE 3
#define MPOL_MF_MOVE 2

static char both[64];	/* two bank sets of node 0, two of node 1 */
static int first_of_1;

static int move_to_1(char *p)
{
	static void *page[PAGES];
	static int node[PAGES], status[PAGES];
	size_t i;

	for (i = 0; i < PAGES; i++) {
		page[i] = p + i * GUEST_PAGE;
		node[i] = 1;
	}
	return syscall(SYS_move_pages, 0, PAGES, page, node, status,
		       MPOL_MF_MOVE);
}

static int bind_to_1(char *p)
{
	unsigned long nodes = 2;

	return syscall(SYS_mbind, p, BYTES, MPOL_BIND, &nodes, 64,
		       MPOL_MF_MOVE);
}

static int migrate_to_1(char *p)
{
	unsigned long from = 1, to = 2;

	(void)p;
	return syscall(SYS_migrate_pages, 0, 64, &from, &to);
}

static long on_node_1(const char *p)
{
	size_t i;
	long n = 0;

	for (i = 0; i < PAGES; i++) {
		int set = guest_set_of(guest_pfn(0, p + i * GUEST_PAGE));

		n += set >= 0 && sol_map_set_node(guest_map(), set) == 1;
	}
	return n;
}

static void try_move(const char *name, int (*move)(char *), bool colours_there)
{
	const char *group = colours_there ? "both" : "near";
	char label[64], stats[64];
	struct guest_audit sum;
	long long moved;
	char *p;

	snprintf(stats, sizeof(stats), "groups/%s/stats", group);
	p = guest_map_anon(BYTES);
	stamp(p, PAGES, 13);
	moved = guest_stat(stats, "moved");
	snprintf(label, sizeof(label), "%s-%s-done", name, group);
	guest_check(move(p) >= 0, label, "%s", strerror(errno));
	snprintf(label, sizeof(label), "%s-%s-node", name, group);
	guest_check(on_node_1(p) == (long)PAGES, label, "%ld of %lu on node 1",
		    on_node_1(p), PAGES);
	snprintf(label, sizeof(label), "%s-%s-content", name, group);
	guest_check(!stamp_broken(p, PAGES, 13), label, "broken");
	sum = guest_audit_range(p, BYTES, colours_there ? both : "0-1", NULL);
	moved = guest_stat(stats, "moved") - moved;
	if (colours_there) {
		snprintf(label, sizeof(label), "%s-in-color", name);
		guest_check(sum.in == (long)PAGES, label, "%ld in, %ld out",
			    sum.in, sum.out);
	} else {
		snprintf(label, sizeof(label), "%s-counted", name);
		guest_check(sum.out == (long)PAGES && moved >= sum.out, label,
			    "%ld out, %lld counted", sum.out, moved);
	}
	munmap(p, BYTES);
}

static int with(const char *group, bool colours_there)
{
	if (guest_join(group))
		guest_die("join: %s", guest_status());
	try_move("move-pages", move_to_1, colours_there);
	try_move("mbind", bind_to_1, colours_there);
	try_move("migrate-pages", migrate_to_1, colours_there);
	return guest_exit();
}

static int with_both(void)
{
	return with("both", true);
}

static int with_near(void)
{
	return with("near", false);
}

/* On one CPU, so that two tasks that yield after each page take turns there. */
static void interleave(void)
{
	unsigned long nodes = 3;

	guest_run_on(0);
	if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &nodes, 64))
		guest_die("set_mempolicy: %s", strerror(errno));
	if (guest_join("both"))
		guest_die("join: %s", guest_status());
}

/* Another task's pages don't take this one's turns: page by page, node by node. */
static int in_turn(void)
{
	pid_t other = fork();
	int before = -1, same = 0, node;
	size_t i;
	char *p;

	interleave();
	p = guest_map_anon(BYTES);
	if (!other)
		for (;;) {
			guest_touch(p, GUEST_PAGE);
			madvise(p, GUEST_PAGE, MADV_DONTNEED);
			sched_yield();
		}
	for (i = 0; i < PAGES; i++) {
		p[i * GUEST_PAGE] = 1;
		sched_yield();
		node = sol_map_set_node(guest_map(),
			guest_set_of(guest_pfn(0, p + i * GUEST_PAGE)));
		same += node == before;
		before = node;
	}
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	/* What a fault needs beside the page may take a turn, seldom. */
	guest_check(same < (int)PAGES / 20, "interleave-in-turn",
		    "%d of %lu pages on the node of the one before", same,
		    PAGES);
	return guest_exit();
}

int main(void)
{
	const struct sol_map *map = guest_map();

	if (map->n_nodes < 2 || access("/sys/devices/system/node/node1", F_OK)) {
		guest_skip("bynode", "one node only");
		return 0;
	}
	first_of_1 = 1 << map->set_bits;
	snprintf(both, sizeof(both), "0-1,%d-%d", first_of_1, first_of_1 + 1);
	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	guest_group("both", both);
	guest_group("near", "0-1");
	guest_check(in_child(with_both) == 0, "bynode-both", "failed");
	guest_check(in_child(in_turn) == 0, "bynode-in-turn", "failed");
	guest_check(in_child(with_near) == 0, "bynode-near", "failed");
	return guest_exit();
}
