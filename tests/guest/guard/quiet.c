/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Regulated CPUs are interrupted each millisecond, others not at all by us. */
#define _GNU_SOURCE
#include "guard.h"

int main(void)
{
	long regulated, other, periods, counted;

	guard_reset();
	pin_self(0);
	settings("event page-faults\nperiod_us 1000\nr_min 1000000000");
	must_limit(1, "40960000");
	must_limit(2, "40960000");
	sleep_ms(50);
	counted = stat_of(3, "interrupts");
	regulated = guest_calls(2);
	other = guest_calls(3);
	periods = guard_stat("periods");
	sleep_ms(500);
	regulated = guest_calls(2) - regulated;
	other = guest_calls(3) - other;
	periods = guard_stat("periods") - periods;
	guest_check(periods > 50 && regulated > periods / 2, "regulated",
		    "%ld calls in %ld periods", regulated, periods);
	guest_check(other < periods / 10 && other < 50, "unregulated",
		    "%ld calls in %ld periods", other, periods);
	guest_check(stat_of(3, "interrupts") == counted,
		    "unregulated-counted", "%lld, not %ld",
		    stat_of(3, "interrupts"), counted);
	guest_check(guard_stat("master") == 1, "master", "%lld",
		    guard_stat("master"));
	guard_reset();
	return guest_exit();
}
