/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Wrong input to guard/: an errno, a sentence, nothing changed. */
#define _GNU_SOURCE
#include "guard.h"
#include "../../../kernel/compat/x86/offcore.h"

/* What guard/ is like: settings and all reservations. */
static char *state(void)
{
	char *text = malloc(16384), path[64];
	size_t at = 0;

	at += snprintf(text + at, 4096, "%s", guest_read("guard/settings"));
	for (int cpu = 0; cpu < 4; cpu++) {
		snprintf(path, sizeof(path), "guard/cpu%d/bandwidth", cpu);
		at += snprintf(text + at, 512, "%s", guest_read(path));
	}
	at += snprintf(text + at, 512, "%s", guest_read("groups/g/bandwidth"));
	return text;
}

static void refused(const char *file, const char *value, const char *says)
{
	char *before = state(), *after, name[128];
	int err = guest_write(file, value);

	after = state();
	snprintf(name, sizeof(name), "refused-%.40s-%.50s", file, value);
	for (char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/')
			*c = '.';
	guest_check(err < 0 && !strcmp(before, after) &&
		    strstr(guest_status(), says), name,
		    "returned %d, says '%s', not '%s'; %s", err, guest_status(),
		    says, strcmp(before, after) ? "changed" : "unchanged");
	free(before);
	free(after);
}

/* The number of `offcore-reads` by family and model; guests have no counter to show it. */
static void offcore(void)
{
	static const struct {
		const char *name;
		unsigned int family, model, raw;
	} cpu[] = {
		{ "nehalem", 6, 0x1a, 0 },
		{ "westmere", 6, 0x2c, 0x08b0 },
		{ "skylake-server", 6, 0x55, 0x08b0 },
		{ "rocket-lake", 6, 0xa7, 0x08b0 },
		{ "alder-lake", 6, 0x97, 0x0821 },
		{ "sapphire-rapids", 6, 0x8f, 0x0821 },
		{ "granite-rapids", 6, 0xad, 0x0821 },
		{ "knights-landing", 6, 0x57, 0 },
		{ "goldmont", 6, 0x5c, 0 },
		{ "gracemont", 6, 0xbe, 0 },
		{ "sierra-forest", 6, 0xaf, 0 },
		{ "diamond-rapids", 19, 1, 0 },
		{ "of-tomorrow", 6, 0xff, 0 },
	};

	for (size_t i = 0; i < sizeof(cpu) / sizeof(*cpu); i++) {
		unsigned int raw = sol_offcore_of(cpu[i].family, cpu[i].model);
		char name[48];

		snprintf(name, sizeof(name), "offcore-%s", cpu[i].name);
		guest_check(raw == cpu[i].raw, name, "%#x, not %#x", raw, cpu[i].raw);
	}
}

/* Writes that are counted no more are in no reservation: what is shown can be written. */
static void writes_end(void)
{
	static const char cpu1[] = "guard/cpu1/bandwidth";
	static const char group[] = "groups/g/bandwidth";
	char shown[128];

	settings("event page-faults\nwrite_event page-faults\nperiod_us 10000\nr_min 100000000\nwrite_r_min 100000000");
	guest_group("g", NULL);
	must_limit(1, "50000000 write=20000000");
	guest_check(!guest_write(group, "weight=3 cpus=2"), "weight-beside-writes", "%s",
		    guest_status());
	settings("write_event none\nwrite_r_min 0");
	snprintf(shown, sizeof(shown), "%s", guest_read(cpu1));
	guest_check(!strcmp(shown, "50000000 reclaim=1\n"), "writes-end", "%s", shown);
	guest_check(!guest_write(cpu1, shown), "writes-end-true", "%s", guest_status());
	guest_check(!strcmp(guest_read(group), "weight=3 reclaim=1 cpus=2\n"),
		    "weight-stays", "%s", guest_read(group));
	guest_ungroup("g");
	guard_reset();
}

int main(void)
{
	static const char cpu1[] = "guard/cpu1/bandwidth";
	static const char set[] = "guard/settings";
	static const char group[] = "groups/g/bandwidth";

	offcore();
	guard_reset();
	guest_group("g", NULL);
	refused(cpu1, "1000000", "r_min is not set");
	refused(set, "period_us 0", "expected 10 to");
	refused(set, "line 3", "power of two");
	refused(set, "ewma 0", "expected 1 to 256");
	settings("event page-faults\nperiod_us 10000\nr_min 100000000");
	must_limit(0, "60000000");

	refused(cpu1, "0", "for good");
	refused(cpu1, "-5", "expected bytes per second");
	refused(cpu1, "fast", "expected bytes per second");
	refused(cpu1, "\n", "expected a rate");
	refused(cpu1, "18446744073709551616", "expected bytes per second");
	refused(cpu1, "1", "less than one line");
	refused(cpu1, "50000000", "more than the guaranteed 99 MB/s");
	refused(cpu1, "weight=0", "expected 1 to");
	refused(cpu1, "weight=-1", "expected 1 to");
	refused(cpu1, "weight=3 write=5", "not both");
	refused(cpu1, "1000000 write=1000000", "not counted apart");
	refused(cpu1, "1000000 reclaim=2", "none of");
	refused(cpu1, "1000000 cpus=1", "is for groups");
	refused(cpu1, "1000000 1000000", "none of");
	refused(group, "1000000", "say cpus=");
	refused(group, "1000000 cpus=", "needs a list of CPUs from 0 to");
	refused(group, "1000000 cpus=4096", "numbers go from 0 to");
	refused(group, "1000000 cpus=9", "numbers go from 0 to");
	refused(group, "1000000 cpus=0-1", "reservation of its own");
	refused(group, "90000000 cpus=1-2", "more than the guaranteed");

	refused(set, "\n", "expected KEY VALUE");
	refused(set, "speed 3", "is no setting");
	refused(set, "period_us 9", "expected 10 to");
	refused(set, "period_us 1000001", "expected a number");
	refused(set, "period_us -1", "expected a number");
	refused(set, "ewma 0", "expected 1 to 256");
	refused(set, "line 100", "power of two");
	refused(set, "sharing all", "expected none, spare");
	refused(set, "event misses", "unknown");
#ifdef __aarch64__
	/* perf takes any: what a CPU counts, its registers say of the lowest. */
	refused(set, "event r19", "can't count");
	refused(set, "event bus-accesses", "can't count");
	refused(set, "event r10011", "can't count");
#else
	refused(set, "event r1c2", "can't count");
#endif
	refused(set, "write_event page-faults", "belong together");
	refused(set, "write_r_min 5000000", "belong together");
	refused(set, "r_min 50000000", "more than the guaranteed");
	refused(set, "r_min 0", "have reservations");
	refused(set, "peak 1000", "above the peak");
	/* The last line is wrong, so the first does nothing. */
	refused(set, "period_us 5000\newma 1000", "expected a number");
#ifdef __aarch64__
	refused(set, "event LLC-misses", "bus-accesses counts its traffic");
#else
	if (access("/sys/bus/event_source/devices/cpu", F_OK))
		refused(set, "event LLC-misses", "page-faults needs none");
	else
		guest_skip("refused-event-without-pmu", "there is a PMU");
#endif

	guest_check(guest_write(group, "20000000 cpus=1-2") == 0, "group",
		    "%s", guest_status());
	guest_check(!strcmp(guest_read(group), "20000000 reclaim=1 cpus=1-2\n"),
		    "group-shown", "%s", guest_read(group));
	guest_check(!strcmp(guest_read(cpu1), "10000000 reclaim=1 group=g\n"),
		    "group-shown-by-cpu", "%s", guest_read(cpu1));
	refused(cpu1, "1000000", "reserved by group g");
	refused(cpu1, "off", "reserved by group g");
	refused(set, "r_min 70000000", "more than the guaranteed");
	guest_check(guest_write(group, "30000000 reclaim=0 cpus=2-3") == 0,
		    "group-moves", "%s", guest_status());
	guest_check(!strcmp(guest_read(cpu1), "off\n"), "group-moved", "%s",
		    guest_read(cpu1));
	guest_check(guest_ungroup("g") == 0 &&
		    !strcmp(guest_read("guard/cpu2/bandwidth"), "off\n"),
		    "rmdir-gives-back", "%s", guest_read("guard/cpu2/bandwidth"));
	guard_reset();
	/* A clock's nanoseconds: the regulation would use them up by itself. */
	settings("event cpu-clock\nperiod_us 1000\nr_min 64000000000");
	refused(cpu1, "10000000", "counts time");
	refused(cpu1, "weight=1000000", "one nanosecond");
	guest_check(limit(1, "6400000000") == 0, "much-of-a-clock", "%s",
		    guest_status());
	/* Nor can settings make it less. */
	refused(set, "period_us 100", "counts time");
	refused(set, "line 4096", "counts time");
	guard_reset();
	settings("event page-faults\nperiod_us 10000\nr_min 100000000");
	must_limit(1, "weight=7 reclaim=0");
	refused(set, "event cpu-clock\nr_min 64000000000", "one nanosecond");
	limit(1, "off");
	must_limit(1, "20000000");
	refused(set, "event cpu-clock\nr_min 64000000000", "counts time");
	guard_reset();
	writes_end();
#ifdef __aarch64__
	guest_check(!guest_write(set, "event r11"), "event-counted", "%s", guest_status());
	guard_reset();
#endif
	return guest_exit();
}
