/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Acts on the control interface: configfs, tracepoints, the mmap() calls. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "../../kernel/uapi/soloist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES	5

struct file {
	const char *name;
	enum kind kind;
};

static const struct file group_files[] = {
	{ "bank_set", SETS }, { "bank_set", SETS }, { "dram_bank", COLORS },
	{ "llc_color", LLC }, { "node", NODES }, { "auto", AUTO },
	{ "mode", MODE }, { "exhaust", EXHAUST }, { "text", TEXT },
	{ "reserve", BYTES }, { "cgroup", CGROUP }, { "bandwidth", GROUP_RATE },
	{ "evict", EVICTION }, { "recolor", RECOLORING }, { "occupancy_all", FLAG },
};

static const struct file rule_files[] = {
	{ "uid", UID }, { "path", GLOB }, { "colors", COUNT },
	{ "exhaust", EXHAUST }, { "realtime", FLAG }, { "enabled", FLAG },
};

static const char *const read_only[] = {
	"id", "stats", "times", "members", "last_cmd_status", "features",
	"implicit", "firmware/components", "guard/stats", "guard/cpu1/stats",
	"occupancy", "occupancy_all", "evict", "recolor",
};

#define PICK(d, list) (&(list)[draw(d, sizeof(list) / sizeof(*(list)))])

static void group_path(struct draw *d, char *path, size_t size)
{
	snprintf(path, size, FUZZ_ROOT "/groups/fuzz%u", draw(d, NAMES));
}

static void rule_path(struct draw *d, char *path, size_t size)
{
	snprintf(path, size, FUZZ_ROOT "/rules/fuzz%u", draw(d, 3));
}

/* A group is there more often than not when something is written to it. */
static void some_group(struct draw *d, char *path, size_t size)
{
	group_path(d, path, size);
	if (draw(d, 4))
		mkdir(path, 0755);
}

static void some_rule(struct draw *d, char *path, size_t size)
{
	rule_path(d, path, size);
	if (draw(d, 4))
		mkdir(path, 0755);
}

static bool write_value(struct draw *d, const char *path, enum kind kind)
{
	static __thread struct value v;
	int err;

	draw_value(d, kind, &v);
	err = put(path, v.text, v.len ? v.len : 1);
	if (err && fuzz->verbose)
		printf("  %s < %.40s: %s, %s", path, v.text, strerror(-err),
		       err == -ENOENT ? "\n" : get(FUZZ_ROOT "/last_cmd_status"));
	return !err;
}

static bool make_group(struct draw *d)
{
	static const char *const names[] = { "x", ".x", "%n", "a b", "\xff" };
	char path[300];

	group_path(d, path, sizeof(path));
	if (draw_one_in(d, 30)) {
		const char *name = *PICK(d, names);

		snprintf(path, sizeof(path), FUZZ_ROOT "/groups/%s", name);
	} else if (draw_one_in(d, 50)) {
		size_t n = strlen(FUZZ_ROOT "/groups/"), len = 30 + draw(d, 230);

		memcpy(path, FUZZ_ROOT "/groups/", n);
		memset(path + n, 'n', len);
		path[n + len > sizeof(path) - 1 ? sizeof(path) - 1 : n + len] = 0;
	}
	return !mkdir(path, 0755);
}

static bool remove_group(struct draw *d)
{
	char path[64];

	group_path(d, path, sizeof(path));
	return !rmdir(path);
}

static bool write_group(struct draw *d)
{
	const struct file *file = PICK(d, group_files);
	char path[96];

	some_group(d, path, 64);
	strcat(strcat(path, "/"), file->name);
	return write_value(d, path, file->kind);
}

static bool join(struct draw *d)
{
	char path[96];

	some_group(d, path, 64);
	strcat(path, draw_one_in(d, 2) ? "/tasks" : "/procs");
	return write_value(d, path, TASK);
}

/* All that makes the caller coloured. */
static bool enter(struct draw *d)
{
	static const struct file files[] = {
		{ "/bank_set", SETS }, { "/llc_color", LLC },
		{ "/exhaust", EXHAUST }, { "/reserve", BYTES },
	};
	char path[96], file[96];
	bool done;

	group_path(d, path, 64);
	mkdir(path, 0755);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (draw(d, 3)) {
			strcat(strcpy(file, path), files[i].name);
			write_value(d, file, files[i].kind);
		}
	done = !put(strcat(path, "/tasks"), "0", 0);
	memory_touch(d);
	return done;
}

/* What others have goes, or what the group's tasks have comes: of any group. */
static bool move(struct draw *d)
{
	static const struct file files[] = {
		{ "/evict", EVICTION }, { "/recolor", RECOLORING },
	};
	const struct file *file = PICK(d, files);
	unsigned int id = 1 + draw(d, 12);
	char path[96];

	if (draw_one_in(d, 4)) {
		snprintf(path, sizeof(path), FUZZ_ROOT "%s", file->name);
		return !putf(path, "%u", id);
	}
	some_group(d, path, 64);
	return write_value(d, strcat(path, file->name), file->kind);
}

static bool make_rule(struct draw *d)
{
	char path[64];

	rule_path(d, path, sizeof(path));
	return !mkdir(path, 0755);
}

static bool remove_rule(struct draw *d)
{
	char path[64];

	rule_path(d, path, sizeof(path));
	return !rmdir(path);
}

static bool write_rule(struct draw *d)
{
	const struct file *file = PICK(d, rule_files);
	char path[96];

	some_rule(d, path, 64);
	strcat(strcat(path, "/"), file->name);
	return write_value(d, path, file->kind);
}

static bool write_guard(struct draw *d)
{
	char path[96];

	switch (draw(d, 8)) {
	case 0:		/* let all go, so that the rest gets somewhere */
		for (int cpu = 0; cpu < FUZZ_CPUS; cpu++) {
			snprintf(path, sizeof(path),
				 FUZZ_ROOT "/guard/cpu%d/bandwidth", cpu);
			put(path, "off", 0);
		}
		return true;
	case 1:
	case 2:
	case 3:
		return write_value(d, FUZZ_ROOT "/guard/settings", SETTINGS);
	default:
		snprintf(path, sizeof(path), FUZZ_ROOT "/guard/cpu%u/bandwidth",
			 draw(d, FUZZ_CPUS));
		return write_value(d, path, CPU_RATE);
	}
}

static bool write_root(struct draw *d)
{
	switch (draw(d, 4)) {
	case 0:
		return write_value(d, FUZZ_ROOT "/firmware/decode", DECODE);
	case 1:
		return write_value(d, FUZZ_ROOT "/map", MAP);
	default:
		return write_value(d, FUZZ_ROOT "/lists", LISTS);
	}
}

static const char *any_file(struct draw *d, char *path, size_t size)
{
	switch (draw(d, 4)) {
	case 0:
		rule_path(d, path, size);
		return strcat(strcat(path, "/"), PICK(d, rule_files)->name);
	case 1:
		snprintf(path, size, FUZZ_ROOT "/%s", *PICK(d, read_only));
		return path;
	case 2:
		group_path(d, path, size);
		return strcat(strcat(path, "/"), *PICK(d, read_only));
	default:
		group_path(d, path, size);
		return strcat(strcat(path, "/"), PICK(d, group_files)->name);
	}
}

/* Reads in pieces; the file stays open while its group may go. */
static bool read_any(struct draw *d)
{
	static __thread char text[8192];
	char path[128];
	unsigned int wait = draw(d, 3000), size = 1 + draw(d, sizeof(text));
	unsigned int skip = draw_one_in(d, 4) ? draw(d, 9000) : 0;
	bool slow = draw_one_in(d, 8);
	int fd = open(any_file(d, path, 64), O_RDONLY | O_CLOEXEC);
	bool some;

	if (fd < 0)
		return false;
	if (slow)
		usleep(wait);
	some = pread(fd, text, size, skip) > 0;
	while (read(fd, text, size) > 0)
		;
	close(fd);
	return some;
}

/* Files are opened before the group goes, and written after it has gone. */
static bool write_late(struct draw *d)
{
	static __thread struct value v;
	const struct file *file = PICK(d, group_files);
	unsigned int wait = draw(d, 5000);
	char path[96];
	bool done;
	int fd;

	group_path(d, path, 64);
	strcat(strcat(path, "/"), file->name);
	draw_value(d, file->kind, &v);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	usleep(wait);
	done = write(fd, v.text, v.len) >= 0;
	close(fd);
	return done;
}

static bool call_mmap(struct draw *d)
{
	static const unsigned int modes[] = {
		SET_MEM_COLOR, CLEAR_MEM_COLOR, SET_LLC_COLOR, CLEAR_LLC_COLOR,
		COLOR_ON, COLOR_OFF, 0u, 7u << COLOR_MODE_SHIFT,
	};
	unsigned long arg = *PICK(d, modes), length = draw(d, 3) ? 0 : 4096;

	switch (draw(d, 6)) {
	case 0:
		arg |= draw(d, COLOR_NUMBER);
		break;
	case 1:
		arg |= (unsigned long)draw(d, ~0u) << 32;
		break;
	default:
		arg |= draw(d, 32);
	}
	return mmap((void *)arg, length, PROT_READ | PROT_WRITE | COLOR_ALLOC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static bool trace(struct draw *d)
{
	static const char *const events[] = {
		"", "soloist_fault/", "soloist_refill/", "soloist_exhausted/",
	};
	char path[128];

	snprintf(path, sizeof(path),
		 "/sys/kernel/tracing/events/soloist/%senable", *PICK(d, events));
	return !putf(path, "%u", draw(d, 2));
}

const struct act control_acts[] = {
	{ "enter", 15, enter },
	{ "make-group", 6, make_group },
	{ "remove-group", 6, remove_group },
	{ "write-group", 30, write_group },
	{ "join", 20, join },
	{ "move", 8, move },
	{ "make-rule", 3, make_rule },
	{ "remove-rule", 2, remove_rule },
	{ "write-rule", 10, write_rule },
	{ "write-guard", 8, write_guard },
	{ "write-root", 4, write_root },
	{ "read", 15, read_any },
	{ "write-late", 4, write_late },
	{ "mmap-call", 12, call_mmap },
	{ "trace", 2, trace },
	{ NULL, 0, NULL },
};
