/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Huge pages set to `always`: a bank-coloured task gets none and stays in
 * colour; a controller-only group keeps them, on its own nodes.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE GUEST_HUGE
#define BYTES (8 * HUGE)

/* Whole blocks are free: what ran before had its small pages all over them. */
static void make_blocks(void)
{
	/* One listed frame breaks a block, and does not move. */
	if (guest_write("lists", "drain"))
		guest_die("lists: %s", guest_status());
	sync();
	if (set_kernel("/proc/sys/vm/drop_caches", "3") ||
	    set_kernel("/proc/sys/vm/compact_memory", "1"))
		guest_die("cannot compact");
}

/* For a message: free blocks by order, node by node. */
static void show_blocks(void)
{
	FILE *f = fopen("/proc/buddyinfo", "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		printf("# %s", line);
	if (f)
		fclose(f);
}

static char *aligned(void)
{
	char *p = guest_map_anon(BYTES + HUGE);

	return (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
}

static int banks(void)
{
	struct guest_audit sum;
	char *p = aligned();

	if (guest_join("thpbank"))
		guest_die("join: %s", guest_status());
	guest_touch(p, BYTES);
	madvise(p, BYTES, MADV_HUGEPAGE);
	sleep(2); /* khugepaged's chance */
	sum = guest_audit_range(p, BYTES, "1-2", NULL);
	guest_check(sum.in == (long)(BYTES / GUEST_PAGE) && !sum.huge,
		    "thp-bank-colors", "%ld in, %ld out, %ld huge", sum.in,
		    sum.out, sum.huge);
	return guest_exit();
}

static int controllers(void)
{
	const struct sol_map *map = guest_map();
	u32 node = map->n_nodes - 1;
	char sets[64], path[64];
	struct guest_audit sum;
	char *p = aligned();

	snprintf(path, sizeof(path), "%u", node);
	if (guest_write("groups/thpnode/node", path))
		guest_die("node: %s", guest_status());
	snprintf(sets, sizeof(sets), "%u-%u", node << map->set_bits,
		 ((node + 1) << map->set_bits) - 1);
	if (guest_join("thpnode"))
		guest_die("join: %s", guest_status());
	/* So the fault may compact, too. */
	madvise(p, BYTES, MADV_HUGEPAGE);
	guest_touch(p, BYTES);
	sum = guest_audit_range(p, BYTES, sets, NULL);
	guest_check(sum.in == (long)(BYTES / GUEST_PAGE) && !sum.out,
		    "thp-controller-in-color", "%ld in, %ld out", sum.in,
		    sum.out);
	if (!guest_check(sum.huge > 0, "thp-controller-keeps-huge-pages",
			 "none of %ld pages", sum.present))
		show_blocks();
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
		guest_check(false, "thp-child", "status %#x", status);
}

int main(void)
{
	if (set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "always")) {
		guest_skip("thp", "this kernel has no transparent huge pages");
		return 0;
	}
	make_blocks();
	guest_group("thpbank", "1-2");
	guest_group("thpnode", NULL);
	in_child(banks);
	in_child(controllers);
	return guest_exit();
}
