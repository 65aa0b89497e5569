/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A reserve goes with its group's colours. If others have no room for it, the writer hears so. */
#include "../lib/guest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool lacks(void)
{
	return !strncmp(guest_status(), "ok, but of the reserve", 22);
}

/* Of two groups of the same colours each has frames of its own reserved. */
static void same_colors(void)
{
	long long bytes, frames;
	int err;

	guest_group("one", "4-5");
	guest_group("other", "4-5");
	bytes = guest_stat("groups/one/stats", "capacity") / 8 & ~(GUEST_PAGE - 1);
	frames = bytes / GUEST_PAGE;
	err = guest_writef("groups/one/reserve", "%lld", bytes);
	guest_check(!err, "reserve-first-of-two", "%d %s", err, guest_status());
	err = guest_writef("groups/other/reserve", "%lld", bytes);
	guest_check(!err && guest_stat("groups/one/stats", "listed") >= 2 * frames,
		    "reserve-of-two-adds-up", "%d %s; %lld frames are listed for twice %lld", err,
		    guest_status(), guest_stat("groups/one/stats", "listed"), frames);
	/* Together more than there is. */
	err = guest_writef("groups/other/reserve", "%lld", 7 * bytes + (long long)GUEST_PAGE);
	guest_check(err == -ENOSPC, "reserve-of-two-does-not-fit", "%d %s", err, guest_status());
	guest_check(atoll(guest_read("groups/other/reserve")) == bytes,
		    "reserve-refused-stays", "%s", guest_read("groups/other/reserve"));
	/* The reserve of one is gone, and its frames serve the other's. */
	guest_write("groups/one/reserve", "0");
	err = guest_writef("groups/other/reserve", "%lld", 2 * bytes);
	guest_check(!err, "reserve-of-one-again", "%d %s", err, guest_status());
	/* Where the other's lies nothing more is free. */
	guest_group("late", "6");
	err = guest_writef("groups/late/reserve", "%lld", 3 * bytes);
	guest_check(!err, "reserve-before-it-moves", "%d %s", err, guest_status());
	err = guest_writef("groups/other/reserve", "%lld", 5 * bytes);
	guest_check(!err, "reserve-fills-most", "%d %s", err, guest_status());
	err = guest_write("groups/late/bank_set", "4-5");
	guest_check(!err && lacks(), "reserve-lacks-what-another-has", "%d %s", err,
		    guest_status());
	guest_ungroup("late");
	guest_ungroup("one");
	guest_ungroup("other");
	guest_write("lists", "drain");
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
	same_colors();
	return guest_exit();
}
