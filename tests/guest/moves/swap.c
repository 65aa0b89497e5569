/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Swap, on zram: coloured pages are not swapped for somebody else's sake; they
 * are when their own memory cgroup is at its limit, and come back in colour.
 */
#include <sys/mount.h>

#include "moves.h"
#include "zram.h"

#define PAGES 4096ul
#define BYTES (PAGES * GUEST_PAGE)
#define CGROUP "/tmp/soloist-cgroup"

static long swapped_of(const char *p)
{
	return guest_audit_range(p, BYTES, NULL, NULL).swapped;
}

/* 0: MADV_PAGEOUT swapped. */
static int uncoloured(void)
{
	char *p = guest_map_anon(BYTES);

	stamp(p, PAGES, 7);
	madvise(p, BYTES, MADV_PAGEOUT);
	printf("# uncoloured: %ld pages swapped\n", swapped_of(p));
	return swapped_of(p) == 0;
}

static int coloured(void)
{
	char *p;
	u64 *was;

	if (guest_join("swap"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(BYTES);
	stamp(p, PAGES, 7);
	was = frames_of(p, PAGES);
	madvise(p, BYTES, MADV_PAGEOUT);
	guest_check(swapped_of(p) == 0, "swap-kept", "%ld pages swapped",
		    swapped_of(p));
	guest_check(frames_moved(p, was, PAGES) == 0, "swap-stays",
		    "%zu pages moved", frames_moved(p, was, PAGES));
	return guest_exit();
}

/* Twice the cgroup's limit: lives, by swapping its own pages. */
static int limited(void)
{
	struct guest_audit sum;
	size_t broken;
	char *p;

	if (set_kernel(CGROUP "/limited/cgroup.procs", "0"))
		guest_die("cgroup.procs: %s", strerror(errno));
	if (guest_join("swap"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(BYTES);
	stamp(p, PAGES, 11);
	sum = guest_audit_range(p, BYTES, "0-1", NULL);
	guest_check(sum.swapped > 0, "swap-own-limit", "nothing swapped");
	broken = stamp_broken(p, PAGES, 11);
	guest_check(broken == 0, "swap-content", "%zu pages broken", broken);
	sum = guest_audit_range(p, BYTES, "0-1", NULL);
	printf("# swapped in again: %ld in colour, %ld out, %ld still swapped\n",
	       sum.in, sum.out, sum.swapped);
	guest_check(sum.in > 0 && !sum.out, "swap-back-in-color",
		    "%ld in, %ld out", sum.in, sum.out);
	return guest_exit();
}

static bool cgroup_with_limit(void)
{
	mkdir(CGROUP, 0755);
	if (mount("none", CGROUP, "cgroup2", 0, NULL) && errno != EBUSY)
		return false;
	set_kernel(CGROUP "/cgroup.subtree_control", "+memory");
	mkdir(CGROUP "/limited", 0755);
	return !set_kernel(CGROUP "/limited/memory.max", "8388608");
}

int main(void)
{
	long long swapped;

	if (!swap_on_zram("256M", 256ul << 20)) {
		guest_skip("swap", "no zram in this guest");
		return 0;
	}
	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	/* After real pressure coloured pages may be swapped, for 5 seconds. */
	wait_ms(6000);
	if (in_child(uncoloured))
		guest_skip("swap-provoked", "MADV_PAGEOUT swapped nothing");
	else
		guest_check(true, "swap-provoked", "-");
	guest_group("swap", "0-1");
	guest_check(in_child(coloured) == 0, "swap-coloured", "failed");
	swapped = guest_stat("stats", "swapped");
	if (!cgroup_with_limit()) {
		guest_skip("swap-own-limit", "no memory cgroup in this guest");
	} else {
		guest_check(in_child(limited) == 0, "swap-limited", "killed");
		guest_check(guest_stat("stats", "swapped") > swapped,
			    "swap-counted", "still %lld", swapped);
	}
	swapoff("/dev/zram0");
	return guest_exit();
}
