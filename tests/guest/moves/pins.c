/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Long-term pins (io_uring's registered buffers): the kernel moves the pages
 * out of movable memory first; they go on in colour, or are counted. Needs a
 * movable zone: boot with movablecore=.
 */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "moves.h"

#define PAGES 512ul
#define BYTES (PAGES * GUEST_PAGE)
#define REGISTER_BUFFERS 0

static bool pin(char *p)
{
	struct iovec buffer = { p, BYTES };
	char params[120] = "";
	int ring = syscall(SYS_io_uring_setup, 1, params);

	return ring >= 0 && !syscall(SYS_io_uring_register, ring,
				     REGISTER_BUFFERS, &buffer, 1);
}

/* 0: pages moved to be pinned. */
static int uncoloured(void)
{
	char *p = guest_map_anon(BYTES);
	size_t moved;
	u64 *was;

	stamp(p, PAGES, 31);
	was = frames_of(p, PAGES);
	if (!pin(p))
		return 2;
	moved = frames_moved(p, was, PAGES);
	printf("# uncoloured: %zu of %lu pages moved\n", moved, PAGES);
	return moved == 0;
}

int main(void)
{
	struct guest_audit sum;
	long long counted;
	size_t moved;
	char *p;
	u64 *was;

	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	if (in_child(uncoloured)) {
		guest_skip("pins", "nothing moved to be pinned (boot with movablecore=)");
		return 0;
	}
	guest_group("pins", "0-1");
	if (guest_join("pins"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(BYTES);
	stamp(p, PAGES, 31);
	was = frames_of(p, PAGES);
	counted = guest_stat("groups/pins/stats", "moved");
	guest_check(pin(p), "pins-pinned", "%s", strerror(errno));
	counted = guest_stat("groups/pins/stats", "moved") - counted;
	moved = frames_moved(p, was, PAGES);
	sum = guest_audit_range(p, BYTES, "0-1", NULL);
	printf("# %zu pages moved, %ld in colour, %ld out, %lld counted\n", moved,
	       sum.in, sum.out, counted);
	guest_check(!stamp_broken(p, PAGES, 31), "pins-content", "broken");
	guest_check(sum.out <= counted, "pins-counted", "%ld out, %lld counted",
		    sum.out, counted);
	guest_check(sum.in > (long)PAGES * 9 / 10, "pins-in-color",
		    "%ld in, %ld out", sum.in, sum.out);
	return guest_exit();
}
