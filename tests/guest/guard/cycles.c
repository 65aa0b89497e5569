/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The guard on a counter of the processor: its overflow interrupts, and stops the CPU
 * until the period ends. Cycles are what QEMU counts on arm64; it does so on an idle
 * CPU, too, so that the time that a thread gets is looked at, not what was counted.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#define LINE 64ll
#define PERIOD_MS 100
#define PART 30			/* percent of the cycles that are allowed */
#define ONLINE "/sys/devices/system/cpu/cpu1/online"
#define RUNS 64

static atomic_bool stop;

/* How long the thread ran between two times that it stood still. */
static long long runs[RUNS];
static atomic_int n_runs;

static void *spin(void *unused)
{
	long long last, from, now;

	(void)unused;
	pin_self(1);
	from = last = now_ns();
	while (!stop) {
		now = now_ns();
		if (now - last > PERIOD_MS / 4 * MS) {
			/* The first began before anybody looked. */
			if (n_runs >= 0)
				runs[n_runs % RUNS] = last - from;
			n_runs++;
			from = now;
		}
		last = now;
	}
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

/* What the CPU did, as of one moment. */
struct look {
	long long periods, stops;
	long long interrupts;	/* of its counter */
};

static struct look look(void)
{
	const char *text = stats_of(1);

	return (struct look){
		.periods = guest_stat_in(text, "periods"),
		.stops = guest_stat_in(text, "stops"),
		.interrupts = guest_stat_in(text, "overflows"),
	};
}

static struct look since(struct look before)
{
	struct look now = look();

	return (struct look){
		.periods = now.periods - before.periods,
		.stops = now.stops - before.stops,
		.interrupts = now.interrupts - before.interrupts,
	};
}

static int by_length(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

/*
 * A period's overshoot: how much longer than its budget the thread ran. Only the median
 * is judged: an emulator that stands still makes single runs longer.
 */
static void overshoot(const char *name)
{
	const long long budget = PERIOD_MS * MS * PART / 100;
	long long sorted[RUNS], median;
	char check[64];
	int n = n_runs < RUNS ? n_runs : RUNS;

	snprintf(check, sizeof(check), "%s-run", name);
	if (n <= 0) {
		guest_check(false, check, "it never stood still");
		return;
	}
	memcpy(sorted, runs, sizeof(sorted));
	qsort(sorted, n, sizeof(*sorted), by_length);
	median = sorted[n / 2];
	printf("# %s: %d runs, %lld us allowed; shortest, median, longest: %lld, %lld, %lld us\n",
	       name, n, budget / 1000, sorted[0] / 1000, median / 1000, sorted[n - 1] / 1000);
	guest_check(median < budget * 5 / 4, check, "%lld us, %lld are allowed", median / 1000,
		    budget / 1000);
}

/*
 * The least share of some looks, of some 30 % that are allowed: an emulator may stand
 * still, for 10 ms and more on a busy host, and its interrupts come late then. Hence the
 * long period, too.
 */
static void stopped(pthread_t thread, long all, const char *name)
{
	struct look did = look();
	char interrupts[64];
	long third;

	n_runs = -1;
	third = share(thread, 15 * PERIOD_MS);
	for (int i = 0; i < GUARD_TRIES / 4 && third * 2 > all; i++) {
		long again = share(thread, 15 * PERIOD_MS);

		if (again < third)
			third = again;
	}
	did = since(did);
	printf("# %s: of %d %%: %ld %%, %lld periods, %lld stops, %lld interrupts\n", name, PART,
	       third, did.periods, did.stops, did.interrupts);
	overshoot(name);
	guest_check(third < all / 2 && third > all / 10, name, "%ld %% of the time, not some 30",
		    third);
	/*
	 * It counts on while it is stopped: one interrupt a period, and no storm of them. A
	 * look may come between an interrupt and its stop.
	 */
	snprintf(interrupts, sizeof(interrupts), "%s-interrupts", name);
	guest_check(did.stops > 10 && did.interrupts + 1 >= did.stops &&
		    did.interrupts <= did.periods + 1, interrupts,
		    "%lld periods, %lld stops, %lld interrupts", did.periods, did.stops,
		    did.interrupts);
}

/*
 * An event of perf's own, of the same kind on the same CPU. @frequency: 0 if none is
 * sampled. @pinned: it has a counter all the time, or none at all.
 */
static int event_beside(unsigned long long frequency, bool pinned)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES, .freq = frequency > 0,
		.sample_freq = frequency, .pinned = pinned,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, 1, -1, 0);

	if (fd < 0)
		guest_die("perf's own event: %m");
	return fd;
}

static long long count_of(int fd)
{
	long long count = 0;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		guest_die("perf's own count: %m");
	return count;
}

/* perf counts and samples beside the guard; neither takes from the other. */
static void beside(pthread_t thread, long all)
{
	/* perf samples less often where interrupts take long, but no less than HZ. */
	int counted = event_beside(0, false), sampled = event_beside(100, false);
	long long before = count_of(counted), first = count_of(sampled);

	stopped(thread, all, "cycles-beside-perf");
	guest_check(count_of(counted) > before && count_of(sampled) > first, "perf-counts-beside",
		    "%lld and %lld cycles", count_of(counted) - before, count_of(sampled) - first);
	close(counted);
	close(sampled);
}

/* Others have all the counters that are left: settings that need no more are taken. */
static void all_taken(void)
{
	int fds[64], n = 0, err;
	long long count;

	do
		fds[n] = event_beside(0, true);
	while (read(fds[n++], &count, sizeof(count)) > 0 && n < 64);
	close(fds[--n]);	/* it got none */
	err = guest_write("guard/settings", "ewma 100");
	guest_check(n < 63 && !err && stat_of(1, "ready") == 1, "cycles-all-taken",
		    "beside %d others: %d, %s; %s", n, err, guest_status(), stats_of(1));
	err = guest_write("guard/settings", "count_kernel 0");
	guest_check(err == -EBUSY && stat_of(1, "ready") == 1, "cycles-none-left",
		    "beside %d others: %d, %s", n, err, guest_status());
	while (n)
		close(fds[--n]);
}

/*
 * Events that were there first, and off, take all counters back: perf gives the guard's
 * up for good. The guard makes another as soon as there is room.
 */
static void lost(const char *text)
{
	long long stops, count;
	int fds[64], n = 0;

	limit(1, "off");
	do
		fds[n] = event_beside(0, true);
	while (read(fds[n++], &count, sizeof(count)) > 0 && n < 64);
	close(fds[--n]);	/* it got none */
	for (int i = 0; i < n; i++)
		ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
	must_limit(1, text);
	for (int i = 0; i < n; i++)
		ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 500 && stat_of(1, "ready"); i++)
		sleep_ms(20);
	guest_check(n < 63 && !stat_of(1, "ready"), "cycles-lost", "beside %d others: %s", n,
		    stats_of(1));
	while (n)
		close(fds[--n]);
	stops = stat_of(1, "stops");
	for (int i = 0; i < 500 && stat_of(1, "stops") < stops + 3; i++)
		sleep_ms(20);
	guest_check(stat_of(1, "ready") && stat_of(1, "stops") >= stops + 3, "cycles-found",
		    "%s", stats_of(1));
}

/* A CPU without a thread: an overflow there stops nobody, and the periods go on. */
static void idle(void)
{
	struct look did = look();

	sleep_ms(10 * PERIOD_MS);
	did = since(did);
	printf("# idle: %lld periods, %lld interrupts\n", did.periods, did.interrupts);
	guest_check(did.periods > 3 && did.interrupts <= did.periods + 1, "cycles-idle",
		    "%lld periods, %lld interrupts", did.periods, did.interrupts);
}

/* The counter of a CPU that goes and comes back is made anew. */
static void replug(void)
{
	guest_set_kernel(ONLINE, "0");
	guest_set_kernel(ONLINE, "1");
	for (int i = 0; i < 1000 && !stat_of(1, "ready"); i++)
		sleep_ms(20);
	guest_check(stat_of(1, "ready"), "cycles-replugged", "%s", stats_of(1));
}

/*
 * All tasks are frozen, the stopped one too, as at a suspend, and go on. Devices stay
 * awake: virtio-fs, which the guest's files are on, refuses to sleep.
 */
static void suspend(void)
{
	long long periods;

	if (access("/sys/power/pm_test", W_OK)) {
		guest_skip("cycles-awake", "this kernel has no test of suspend");
		return;
	}
	guest_set_kernel("/sys/module/suspend/parameters/pm_test_delay", "1");
	guest_set_kernel("/sys/power/pm_test", "freezer");
	guest_set_kernel("/sys/power/state", "freeze");
	guest_set_kernel("/sys/power/pm_test", "none");
	periods = stat_of(1, "periods");
	for (int i = 0; i < 200 && stat_of(1, "periods") < periods + 3; i++)
		sleep_ms(20);
	guest_check(stat_of(1, "ready") && stat_of(1, "periods") >= periods + 3, "cycles-awake",
		    "%s", stats_of(1));
}

/* Back on the CPU, which it had to leave. */
static void pin(pthread_t thread)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (pthread_setaffinity_np(thread, sizeof(set), &set))
		guest_die("no CPU 1 for the thread");
}

static pthread_t start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, spin, NULL))
		guest_die("no thread");
	sleep_ms(100);
	return thread;
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
	pthread_t thread;
	char text[64];
	long long hz;
	long all;

	guard_reset();
	if (guest_write("guard/settings", "event cpu-cycles\nr_min 1000000000000\nperiod_us 100000") ||
	    limit(1, "1000000000000")) {
		guest_skip("cycles", guest_status());
		guard_reset();
		return 0;
	}
	pin_self(0);
	thread = start();
	hz = rate();
	all = share(thread, 300);
	printf("# %lld million cycles/s, the thread runs %ld %% of the time\n", hz / 1000000, all);
	guest_check(hz > 1000000, "cycles-counted", "%lld a second", hz);
	snprintf(text, sizeof(text), "%lld", hz * PART / 100 * LINE);
	must_limit(1, text);
	sleep_ms(PERIOD_MS);
	stopped(thread, all, "cycles-stopped");
	beside(thread, all);
	all_taken();
	lost(text);
	replug();
	pin(thread);
	stopped(thread, all, "cycles-stopped-again");
	suspend();
	stopped(thread, all, "cycles-stopped-awake");
	limit(1, "off");
	guest_check(share(thread, 300) > all * 3 / 4, "cycles-let-go", "it still stands");
	stop = true;
	pthread_join(thread, NULL);
	must_limit(1, text);
	idle();
	guard_reset();
	return guest_exit();
}
