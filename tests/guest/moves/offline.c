/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory going offline: pages of the block move, in colour or counted; listed
 * frames of the block go back, so that it can go at all.
 */
#include "moves.h"

#define MEMORY "/sys/devices/system/memory/"
#define PAGES 8192ul
#define BYTES (PAGES * GUEST_PAGE)

static u64 block_frames(void)
{
	char text[32] = "";
	int fd = open(MEMORY "block_size_bytes", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close(fd);
	return strtoull(text, NULL, 16) / GUEST_PAGE;
}

static int block_set(u64 block, const char *state)
{
	char path[128];

	snprintf(path, sizeof(path), MEMORY "memory%llu/state",
		 (unsigned long long)block);
	return set_kernel(path, state);
}

/* Take one block offline that held one of @pfn; its number, or -1. */
static long offline_one(const u64 *pfn, u64 per_block)
{
	u64 tried[64];
	size_t i, j, n = 0;

	for (i = 0; i < PAGES && n < 64; i++) {
		u64 block = pfn[i] / per_block;

		for (j = 0; j < n && tried[j] != block; j++)
			;
		if (j < n)
			continue;
		tried[n++] = block;
		if (!block_set(block, "offline"))
			return block;
	}
	return -1;
}

int main(void)
{
	u64 per_block = block_frames();
	struct guest_audit sum;
	long long moved;
	size_t i, left = 0;
	long block;
	char *p;
	u64 *was;

	if (!per_block) {
		guest_skip("offline", "no memory hotplug in this kernel");
		return 0;
	}
	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	guest_group("offline", "0-1");
	if (guest_join("offline"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(BYTES);
	stamp(p, PAGES, 19);
	was = frames_of(p, PAGES);
	moved = guest_stat("groups/offline/stats", "moved");
	block = offline_one(was, per_block);
	if (block < 0) {
		guest_skip("offline", "no block with our pages can go offline (boot with movablecore=)");
		return 0;
	}
	moved = guest_stat("groups/offline/stats", "moved") - moved;
	for (i = 0; i < PAGES; i++)
		left += guest_pfn(0, p + i * GUEST_PAGE) / per_block ==
			(u64)block;
	guest_check(!left, "offline-moves", "%zu pages still there", left);
	guest_check(!stamp_broken(p, PAGES, 19), "offline-content", "broken");
	sum = guest_audit_range(p, BYTES, "0-1", NULL);
	printf("# block %ld went offline: %zu pages moved, %ld in colour, %ld out\n",
	       block, frames_moved(p, was, PAGES), sum.in, sum.out);
	guest_check(sum.out <= moved, "offline-counted",
		    "%ld out, %lld counted", sum.out, moved);
	guest_check(sum.out == 0, "offline-in-color", "%ld out", sum.out);
	block_set(block, "online");
	return guest_exit();
}
