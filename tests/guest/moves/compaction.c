/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compaction: coloured pages stay in their very frames while the whole machine
 * is compacted, and pages of others between them move.
 */
#include "moves.h"

#define PAGES 8192ul

/* Fragment: map, touch, give back every page but one of four. */
static char *sparse_buffer(void)
{
	char *p = guest_map_anon(PAGES * GUEST_PAGE);
	size_t i;

	stamp(p, PAGES, 3);
	for (i = 0; i < PAGES; i++)
		if (i % 4)
			madvise(p + i * GUEST_PAGE, GUEST_PAGE, MADV_DONTNEED);
	return p;
}

static size_t sparse_broken(const char *p)
{
	size_t i, broken = 0;

	for (i = 0; i < PAGES; i += 4)
		broken += *(const u64 *)(p + i * GUEST_PAGE) != (i + 1) * 3;
	return broken;
}

static void compact(void)
{
	int i;

	for (i = 0; i < 3; i++)
		if (set_kernel("/proc/sys/vm/compact_memory", "1"))
			guest_die("compact_memory: %s", strerror(errno));
}

/*
 * 0: something moved. Pages move to the far end of their zone, so leave room:
 * hold a large buffer while ours is allocated.
 */
static int uncoloured(void)
{
	size_t room = 192ul << 20;
	char *p, *held;
	size_t moved;
	u64 *was;

	held = guest_map_anon(room);
	guest_touch(held, room);
	p = sparse_buffer();
	munmap(held, room);
	was = frames_of(p, PAGES);
	compact();
	moved = frames_moved(p, was, PAGES);
	printf("# uncoloured: %zu of %lu pages moved\n", moved, PAGES / 4);
	return moved == 0;
}

int main(void)
{
	struct guest_audit sum;
	long long before;
	size_t moved;
	char *p;
	u64 *was;

	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	if (in_child(uncoloured))
		guest_skip("compaction-provoked",
			   "nothing was compacted in this guest");
	else
		guest_check(true, "compaction-provoked", "-");
	guest_group("compaction", "0-1");
	before = guest_stat("stats", "kept");
	if (guest_join("compaction"))
		guest_die("join: %s", guest_status());
	p = sparse_buffer();
	was = frames_of(p, PAGES);
	compact();
	moved = frames_moved(p, was, PAGES);
	guest_check(moved == 0, "compaction-stays", "%zu pages moved", moved);
	guest_check(sparse_broken(p) == 0, "compaction-content", "%zu broken",
		    sparse_broken(p));
	sum = guest_audit_range(p, PAGES * GUEST_PAGE, "0-1", NULL);
	guest_check(sum.in == (long)PAGES / 4 && !sum.out,
		    "compaction-in-color", "%ld in, %ld out", sum.in, sum.out);
	if (before >= 0)
		printf("# kept from moving: %lld\n",
		       guest_stat("stats", "kept") - before);
	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "always");
	return guest_exit();
}
