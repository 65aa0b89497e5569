/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is drawn from the seed: numbers, and values for control files. */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t mixed(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9;
	x ^= x >> 27;
	x *= 0x94d049bb133111eb;
	return x ^ x >> 31;
}

void draw_begin(struct draw *d, uint64_t seed, unsigned int epoch,
		unsigned int worker, unsigned int step)
{
	d->state = mixed(seed + 1);
	d->state = mixed(d->state ^ epoch);
	d->state = mixed(d->state ^ (uint64_t)worker << 32 ^ step);
}

unsigned int draw(struct draw *d, unsigned int n)
{
	d->state += 0x9e3779b97f4a7c15;
	return (mixed(d->state) >> 32) % n;
}

bool draw_one_in(struct draw *d, unsigned int n)
{
	return !draw(d, n);
}

/* ---- values ---- */

__attribute__((format(printf, 2, 3)))
static void say(struct value *v, const char *fmt, ...)
{
	size_t left = sizeof(v->text) - v->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(v->text + v->len, left, fmt, ap);
	va_end(ap);
	v->len += (size_t)n < left ? (size_t)n : left - 1;
}

#define ONE_OF(d, words) words[draw(d, sizeof(words) / sizeof(*(words)))]

/* A list below @n, as the kernel writes them; not always in order. */
static void list(struct draw *d, struct value *v, unsigned int n)
{
	unsigned int i, parts = draw(d, 5);

	for (i = 0; i < parts; i++) {
		unsigned int from = draw(d, n);

		say(v, "%s%u", i ? "," : "", from);
		if (draw_one_in(d, 3))
			say(v, "-%u", from + draw(d, n - from));
	}
}

static void rate(struct draw *d, struct value *v, bool group)
{
	if (draw_one_in(d, 4)) {
		say(v, "off");
		return;
	}
	if (draw_one_in(d, 4))
		say(v, "weight=%u", 1 + draw(d, 9));
	else
		say(v, "%u000000", 1 + draw(d, 400));
	if (draw_one_in(d, 5))
		say(v, " write=%u000000", 1 + draw(d, 400));
	if (draw_one_in(d, 3))
		say(v, " reclaim=%u", draw(d, 2));
	if (!group)
		return;
	say(v, " cpus=");
	list(d, v, FUZZ_CPUS);
}

static void setting(struct draw *d, struct value *v)
{
	static const char *const events[] = {
		"page-faults", "page-faults", "context-switches", "cpu-clock",
		"LLC-misses", "r1c2", "none",
	};
	static const char *const sharing[] = { "none", "spare", "proportional" };
	static const char *const flags[] = { "count_kernel", "per_task", "by_bank" };
	static const char *const stop[] = { "anywhere", "user" };

	switch (draw(d, 10)) {
	case 0:
		say(v, "event %s\n", ONE_OF(d, events));
		break;
	case 1:
		say(v, "write_event %s\n", ONE_OF(d, events));
		break;
	case 2:
		say(v, "period_us %u\n", 10 + draw(d, draw_one_in(d, 4) ? 1000000 : 20000));
		break;
	case 3:
		say(v, "r_min %u000000\n", draw(d, 64000));
		break;
	case 4:
		say(v, "sharing %s\n", ONE_OF(d, sharing));
		break;
	case 5:
		say(v, "%s %u\n", ONE_OF(d, flags), draw(d, 2));
		break;
	case 6:
		say(v, "ewma %u\n", 1 + draw(d, 256));
		break;
	case 7:
		say(v, "q_min %u\n", draw(d, 1000));
		break;
	case 8:
		say(v, "stop %s\n", ONE_OF(d, stop));
		break;
	default:
		say(v, "event page-faults\nperiod_us 10000\nr_min 64000000000\n");
	}
}

/* Never the fuzzer's own first process, nor init: they are to stay. */
static void task(struct draw *d, struct value *v)
{
	unsigned int worker = draw(d, FUZZ_WORKERS), kernel = draw(d, 60);

	switch (draw(d, 8)) {
	case 0:
		say(v, "%u", 2 + kernel);
		break;
	case 1:
	case 2:
		say(v, "%d", fuzz->pid[worker]);
		break;
	case 3:
		say(v, "%d\n%d", fuzz->pid[worker], fuzz->pid[kernel % FUZZ_WORKERS]);
		break;
	default:
		say(v, "0");
	}
}

/* Fast enough for a step. */
static void how(struct draw *d, struct value *v)
{
	if (draw_one_in(d, 3))
		say(v, " rate=%u000000", 50 + draw(d, 1000));
	if (draw_one_in(d, 3))
		say(v, " isolated");
}

static void valid(struct draw *d, enum kind kind, struct value *v)
{
	static const char *const words[][3] = {
		[MODE] = { "exclusive", "shareable", "shareable" },
		[EXHAUST] = { "fail", "grow", "spill" },
		[TEXT] = { "private", "shared", "shared" },
		[LISTS] = { "demand", "drain", "all" },
		[UID] = { "0", "any", "registered" },
	};
	static const char *const cgroups[] = {
		"/fuzz0", "/fuzz1", "/fuzz0/in", "/none/such", "",
	};
	static const char *const globs[] = {
		FUZZ_DIR "/bin/*", "*/fuzz", "*", "/bin/[a-z]*", "*/other?",
	};

	switch (kind) {
	case SETS:
		list(d, v, 32);
		break;
	case COLORS:
		list(d, v, 32);
		break;
	case LLC:
		list(d, v, 8);
		break;
	case NODES:
		list(d, v, 2);
		break;
	case AUTO:
		say(v, "%u", 1 + draw(d, 8));
		if (draw_one_in(d, 3))
			say(v, " node=%u", draw(d, 2));
		if (draw_one_in(d, 3))
			say(v, " llc=%u", 1 + draw(d, 4));
		if (draw_one_in(d, 4))
			say(v, " realtime");
		break;
	case MODE:
	case EXHAUST:
	case TEXT:
	case LISTS:
	case UID:
		say(v, "%s", words[kind][draw(d, 3)]);
		break;
	case BYTES:
		say(v, "%u%c", draw(d, 64), "KMMM"[draw(d, 4)]);
		break;
	case CGROUP:
		say(v, "%s\n", ONE_OF(d, cgroups));
		break;
	case GROUP_RATE:
		rate(d, v, true);
		break;
	case CPU_RATE:
		rate(d, v, false);
		break;
	case TASK:
		task(d, v);
		break;
	case SETTINGS:
		setting(d, v);
		if (draw_one_in(d, 3))
			setting(d, v);
		break;
	case GLOB:
		say(v, "%s", ONE_OF(d, globs));
		break;
	case COUNT:
		say(v, "%u", draw(d, 6));
		break;
	case FLAG:
		say(v, "%u", draw(d, 2));
		break;
	case DECODE:
		say(v, "%#x %#x\n", draw(d, 1u << 31), draw(d, 1u << 31));
		break;
	case EVICTION:
		say(v, "1");
		how(d, v);
		break;
	case RECOLORING:
		say(v, "%d", draw_one_in(d, 2) ? fuzz->pid[draw(d, FUZZ_WORKERS)] : 0);
		how(d, v);
		break;
	case MAP:
		memcpy(v->text, fuzz->map, fuzz->map_len);
		v->len = fuzz->map_len;
	}
}

/* ---- and what no file takes ---- */

static void spoil(struct draw *d, struct value *v)
{
	unsigned int times = 1 + draw(d, 4);

	while (times--) {
		size_t at = draw(d, v->len + 1), n = draw(d, 8);

		switch (draw(d, 4)) {
		case 0:		/* another byte */
			if (at < v->len)
				v->text[at] = draw(d, 256);
			break;
		case 1:		/* without some */
			if (at + n <= v->len) {
				memmove(v->text + at, v->text + at + n,
					v->len - at - n);
				v->len -= n;
			}
			break;
		case 2:		/* some twice */
			if (at + n <= v->len && v->len + n < sizeof(v->text)) {
				memmove(v->text + at + n, v->text + at,
					v->len - at);
				v->len += n;
			}
			break;
		default:	/* another digit */
			while (at < v->len && (v->text[at] < '0' ||
					       v->text[at] > '9'))
				at++;
			if (at < v->len)
				v->text[at] = '0' + draw(d, 10);
		}
	}
}

static void hostile(struct draw *d, enum kind kind, struct value *v)
{
	static const char *const words[] = {
		"-1", "4294967295", "4294967296", "9223372036854775807",
		"18446744073709551615", "18446744073709551616", "0-", "-", ",",
		"0-4294967295", "31-0", "0x7fffffff", "1e9", "%s%n%p", "\n\n",
		"0\0001", "999999999T", "weight=4294967296 cpus=0", "9999999",
		"period_us 4294967306", "auto", "../..", " ", "\t0", "00000000001",
		"r_min 18446744073709551615\npeak 1", "0,0,0,0,0,0,0,0-31,1",
	};
	size_t n;

	switch (draw(d, 4)) {
	case 0:		/* noise */
		for (n = draw(d, 64); v->len < n; v->len++)
			v->text[v->len] = draw(d, 256) | (kind == TASK) << 7;
		break;
	case 1:		/* long */
		n = 4090 + draw(d, draw_one_in(d, 2) ? 10 : 4096);
		memset(v->text, "1,0 \n-"[draw(d, 6)], n);
		v->len = n;
		break;
	default:
		say(v, "%s", ONE_OF(d, words));
	}
}

void draw_value(struct draw *d, enum kind kind, struct value *v)
{
	unsigned int how = draw(d, 10);

	v->len = 0;
	if (how == 9) {
		hostile(d, kind, v);
		return;
	}
	valid(d, kind, v);
	/* A byte less may name init, or the root of all cgroups. */
	if (how >= 7 && kind != TASK && kind != CGROUP)
		spoil(d, v);
}
