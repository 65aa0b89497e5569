/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Failing memory: a soft-offlined page moves, its old frame never comes back;
 * a poisoned one kills its user only, and its group still ends.
 */
#include <signal.h>

#include "moves.h"

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
#ifndef MADV_HWPOISON
#define MADV_HWPOISON 100
#endif
#define PAGES 4096ul
#define BYTES (PAGES * GUEST_PAGE)

static int soft(void)
{
	char *p, *more;
	size_t i, again = 0;
	u64 was;

	if (guest_join("failing"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(GUEST_PAGE);
	stamp(p, 1, 17);
	was = guest_pfn(0, p);
	if (madvise(p, GUEST_PAGE, MADV_SOFT_OFFLINE)) {
		guest_skip("soft-offline", strerror(errno));
		return 0;
	}
	guest_check(!stamp_broken(p, 1, 17), "soft-offline-content", "broken");
	guest_check(guest_pfn(0, p) != was, "soft-offline-moves",
		    "frame %#llx still used", (unsigned long long)was);
	more = guest_map_anon(BYTES);
	guest_touch(more, BYTES);
	for (i = 0; i < PAGES; i++)
		again += guest_pfn(0, more + i * GUEST_PAGE) == was;
	guest_check(!again, "soft-offline-gone", "the frame was handed out");
	guest_check(guest_stat("groups/failing/stats", "moved") > 0,
		    "soft-offline-counted", "moved 0");
	return guest_exit();
}

static int hard(void)
{
	char *p;

	signal(SIGBUS, SIG_DFL);
	if (guest_join("failing"))
		_exit(2);
	p = guest_map_anon(GUEST_PAGE);
	*p = 1;
	if (madvise(p, GUEST_PAGE, MADV_HWPOISON))
		return 0;
	*(volatile char *)p = 2;
	return 1;	/* must not get here */
}

int main(void)
{
	int i, err;

	guest_group("failing", "0-1");
	guest_check(in_child(soft) == 0, "soft-offline", "failed");
	i = in_child(hard);
	if (i == 0)
		guest_skip("hwpoison", "not in this kernel");
	else
		guest_check(i == 255, "hwpoison-kills-its-user", "exit %d", i);
	err = guest_ungroup("failing");
	guest_check(!err, "failing-rmdir", "%s", strerror(-err));
	for (i = 0; i < 50 && guest_stat("stats", "removed") > 0; i++)
		wait_ms(100);
	guest_check(guest_stat("stats", "removed") == 0, "failing-group-ends",
		    "%lld removed groups wait for frames",
		    guest_stat("stats", "removed"));
	return guest_exit();
}
