/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Huge pages of a group whose colours hold whole huge blocks, but not every
 * block of the node: those that it gets are in colour, and small pages are not
 * collapsed to one of any colour. Needs a map of its own, and puts the one that
 * was there back.
 */
#include "moves.h"

#define HUGE GUEST_HUGE
#define LEAST (64ul << 20)
#define BYTES (4 * HUGE > LEAST ? 4 * HUGE : LEAST)
#define BANKS (__builtin_ctzl(HUGE) + 1)	/* first bit of the bank */

/* Banks by two bits above a huge page, over the ranges of the map that is loaded. */
static void coarse_map(char *text, size_t size)
{
	const struct sol_map *map = guest_map();
	size_t n;
	u32 i;

	n = snprintf(text, size, "soloist-map 1\nname coarse\nline 64\n"
		     "layout\nbank %d %d\n", BANKS, BANKS + 1);
	for (i = 0; i < map->n_ranges; i++)
		n += snprintf(text + n, size - n,
			      "range %#llx %#llx node %u base %#llx layout 0\n",
			      (unsigned long long)map->range[i].start,
			      (unsigned long long)map->range[i].end,
			      map->range[i].node,
			      (unsigned long long)map->range[i].base);
}

/* A map is taken once the frames of removed groups are back. */
static void load_map(const char *text)
{
	int i, err = -EBUSY;

	for (i = 0; i < 100 && err == -EBUSY; i++) {
		err = guest_write("map", text);
		if (err == -EBUSY)
			wait_ms(100);
	}
	if (err)
		guest_die("map: %s", guest_status());
}

static long in_set_0(const char *p)
{
	long in = 0;
	size_t i;

	for (i = 0; i < BYTES; i += GUEST_PAGE) {
		u64 address = guest_pfn(0, p + i) * GUEST_PAGE;
		u32 k = 0;
		const struct sol_map *map = guest_map();

		while (k < map->n_ranges && address >= map->range[k].end)
			k++;
		address += map->range[k].base - map->range[k].start;
		in += map->range[k].node == 0 && !(address >> BANKS & 3);
	}
	return in;
}

/* The group's own huge pages are no stranger's. */
static void whose(const struct guest_audit *sum)
{
	char occupancy[1024];
	long long own;

	snprintf(occupancy, sizeof(occupancy), "%s",
		 guest_read("groups/hugecolor/occupancy"));
	own = guest_stat_in(occupancy, "own");
	if (!sum->huge)
		guest_skip("hugecolor-occupancy", "there was no huge block");
	else
		guest_check(own >= sum->present, "hugecolor-occupancy",
			    "%lld frames are its own of %ld: %s", own,
			    sum->present, occupancy);
}

static int coloured(void)
{
	long pages = BYTES / GUEST_PAGE;
	struct guest_audit sum;
	char *p;

	guest_group("hugecolor", "0");
	if (guest_join("hugecolor"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(2 * BYTES + HUGE);
	p = (char *)(((unsigned long)p + HUGE - 1) & ~(HUGE - 1));
	madvise(p, BYTES, MADV_HUGEPAGE);
	guest_touch(p, BYTES);
	sum = guest_audit_range(p, BYTES, NULL, NULL);
	printf("# %ld of %ld pages are of huge ones\n", sum.huge, pages);
	whose(&sum);
	guest_check(in_set_0(p) == pages, "hugecolor-in-color",
		    "%ld of %ld pages in colour", in_set_0(p), pages);
	set_kernel(THP "enabled", "never");
	guest_touch(p + BYTES, BYTES);
	set_kernel(THP "enabled", "always");
	madvise(p + BYTES, BYTES, MADV_HUGEPAGE);
	khugepaged_scans();
	guest_check(in_set_0(p) == pages && in_set_0(p + BYTES) == pages,
		    "hugecolor-scanned", "%ld and %ld of %ld pages in colour",
		    in_set_0(p), in_set_0(p + BYTES), pages);
	guest_check(madvise(p + BYTES, BYTES, MADV_COLLAPSE) != 0 &&
			    in_set_0(p + BYTES) == pages,
		    "hugecolor-collapse", "%ld of %ld pages in colour",
		    in_set_0(p + BYTES), pages);
	return guest_exit();
}

int main(void)
{
	static char before[4096], coarse[4096];

	if (access(THP, F_OK)) {
		guest_skip("hugecolor", "this kernel has no huge pages");
		return 0;
	}
	set_kernel(THP "enabled", "always");
	khugepaged_hurry();
	snprintf(before, sizeof(before), "%s", guest_read("map"));
	coarse_map(coarse, sizeof(coarse));
	load_map(coarse);
	guest_check(in_child(coloured) == 0, "hugecolor", "failed");
	guest_ungroup("hugecolor");
	load_map(before);
	return guest_exit();
}
