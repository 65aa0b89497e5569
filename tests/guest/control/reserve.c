/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A reserve goes with its group's colours. If others have no room for it, the writer hears so. */
#include "../lib/guest.h"

#include <string.h>

static bool lacks(void)
{
	return !strncmp(guest_status(), "ok, but of the reserve", 22);
}

int main(void)
{
	const char *stats = "groups/moves/stats";
	long long bytes;
	int err;

	guest_group("moves", "3-4");
	bytes = guest_stat(stats, "capacity") / 4 * 3;
	err = guest_writef("groups/moves/reserve", "%lld", bytes);
	guest_check(!err, "reserve-three-quarters", "%d %s", err, guest_status());
	err = guest_write("groups/moves/bank_set", "5-6");
	guest_check(!err && !lacks(), "reserve-goes-along", "%d %s", err, guest_status());
	guest_check(guest_stat(stats, "listed") >= bytes / (long long)GUEST_PAGE,
		    "reserve-in-other-colours", "%lld frames of %lld bytes",
		    guest_stat(stats, "listed"), bytes);
	err = guest_write("groups/moves/bank_set", "5");
	guest_check(!err && lacks(), "reserve-lacks-room", "%d %s", err, guest_status());
	err = guest_write("groups/moves/auto", "1 node=0");
	guest_check(!err && lacks(), "reserve-lacks-room-auto", "%d %s", err, guest_status());
	guest_write("groups/moves/reserve", "0");
	err = guest_write("groups/moves/bank_set", "6");
	guest_check(!err && !strcmp(guest_status(), "ok"), "reserve-none", "%d %s", err,
		    guest_status());
	guest_ungroup("moves");
	guest_write("lists", "drain");
	return guest_exit();
}
