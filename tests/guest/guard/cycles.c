/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The guard on a counter of the processor: its overflow interrupts, and stops the CPU
 * until the period ends. Cycles are what QEMU counts on arm64; it does so on an idle
 * CPU, too, so that the time that a thread gets is looked at, not what was counted.
 */
#define _GNU_SOURCE
#include "guard.h"

#define LINE 64ll

static atomic_bool stop;

static void *spin(void *unused)
{
	(void)unused;
	pin_self(1);
	while (!stop)
		;
	return NULL;
}

/* How much of @ms the thread ran, in percent. */
static long share(pthread_t thread, long ms)
{
	struct timespec t[2];
	clockid_t clock;
	long long from;

	if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t[0]))
		guest_die("clock of a thread: %m");
	from = now_ns();
	sleep_ms(ms);
	clock_gettime(clock, &t[1]);
	return ((t[1].tv_sec - t[0].tv_sec) * 1000000000ll + t[1].tv_nsec - t[0].tv_nsec) * 100 /
	       (now_ns() - from);
}

/* Cycles in a second while the CPU runs. */
static long long rate(void)
{
	struct usage u = usage_so_far(1, "used_bytes");
	long long from = now_ns();

	sleep_ms(1000);
	usage_since(&u, 1, "used_bytes");
	return u.used / LINE * 1000000000ll / (now_ns() - from);
}

int main(void)
{
	long long hz, stops, counts;
	pthread_t thread;
	char text[64];
	long all, third;

	guard_reset();
	if (guest_write("guard/settings", "event cpu-cycles\nr_min 1000000000000\nperiod_us 100000") ||
	    limit(1, "1000000000000")) {
		guest_skip("cycles", guest_status());
		guard_reset();
		return 0;
	}
	pin_self(0);
	if (pthread_create(&thread, NULL, spin, NULL))
		guest_die("no thread");
	sleep_ms(100);
	hz = rate();
	all = share(thread, 300);
	printf("# %lld million cycles/s, the thread runs %ld %% of the time\n", hz / 1000000, all);
	guest_check(hz > 1000000, "cycles-counted", "%lld a second", hz);
	snprintf(text, sizeof(text), "%lld", hz * 3 / 10 * LINE);
	must_limit(1, text);
	sleep_ms(100);
	stops = stat_of(1, "stops");
	counts = stat_of(1, "interrupts");
	/*
	 * The least of some: an emulator may stand still, for 10 ms and more on a busy host, and
	 * its interrupts come late then. Hence the long period, too.
	 */
	third = share(thread, 1500);
	for (int i = 0; i < GUARD_TRIES / 4 && third * 2 > all; i++) {
		long again = share(thread, 1500);

		if (again < third)
			third = again;
	}
	stops = stat_of(1, "stops") - stops;
	counts = stat_of(1, "interrupts") - counts;
	printf("# of 30 %%: %ld %%, %lld stops, %lld interrupts\n", third, stops, counts);
	guest_check(third < all / 2 && third > all / 10, "cycles-stopped",
		    "%ld %% of the time, not some 30", third);
	guest_check(stops > 10 && counts >= stops, "cycles-interrupts", "%lld stops, %lld interrupts",
		    stops, counts);
	limit(1, "off");
	guest_check(share(thread, 300) > all * 3 / 4, "cycles-let-go", "it still stands");
	stop = true;
	pthread_join(thread, NULL);
	guard_reset();
	return guest_exit();
}
