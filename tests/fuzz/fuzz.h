/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A fuzzer of the module: workers that do random acts at once, each act drawn
 * from the seed, its epoch, its worker and its step alone. Nothing that an act
 * finds out changes what is drawn next, so a seed repeats every worker's
 * sequence, also when a worker was killed in between; how workers interleave
 * it can't repeat. Acts may fail. What may not happen is a report of the
 * kernel's, a hang, a group that stays or memory that doesn't come back.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FUZZ_ROOT	"/sys/kernel/config/soloist"
#define FUZZ_CGROUPS	"/sys/fs/cgroup"
#define FUZZ_DIR	"/run/fuzz"
#define FUZZ_WORKERS	6
#define FUZZ_CPUS	4	/* of the guest, tests/fuzz/run */

/* ---- drawing (draw.c) ---- */

struct draw {
	uint64_t state;
};

void draw_begin(struct draw *d, uint64_t seed, unsigned int epoch,
		unsigned int worker, unsigned int step);
/* One of 0 to @n - 1. */
unsigned int draw(struct draw *d, unsigned int n);
bool draw_one_in(struct draw *d, unsigned int n);

/* A value for a file: mostly what it takes, else something like it, or none. */
struct value {
	size_t len;
	char text[8192];
};

enum kind {
	SETS,		/* lists of bank sets, bank colours, LLC colours, nodes */
	COLORS,
	LLC,
	NODES,
	AUTO,
	MODE,
	EXHAUST,
	TEXT,
	BYTES,
	CGROUP,
	GROUP_RATE,
	CPU_RATE,
	TASK,
	SETTINGS,
	UID,
	GLOB,
	COUNT,
	FLAG,
	LISTS,
	DECODE,
	MAP,
	EVICTION,
	RECOLORING,
};

void draw_value(struct draw *d, enum kind kind, struct value *v);

/* ---- what workers share ---- */

struct act {
	const char *name;
	unsigned int weight;
	/* Whether it did something: told at the end, and nothing else. */
	bool (*run)(struct draw *d);
};

struct shared {
	unsigned int step[FUZZ_WORKERS];
	unsigned int killed, livelocks;
	bool verbose;	/* acts are told */
	bool without;	/* no module: is it the kernel's own? */
	pid_t pid[FUZZ_WORKERS];
	const char *now[FUZZ_WORKERS];	/* acts that run */
	char module[512], map[4096];	/* path; the guest's own map */
	unsigned int map_len;
};

extern struct shared *fuzz;

/* Acts, each list ended by one without a name. */
extern const struct act control_acts[], memory_acts[], task_acts[],
	machine_acts[];

/* ---- small things (file.c) ---- */

/* Write to a file, @len 0: the string. 0 or -errno. */
int put(const char *path, const void *text, size_t len);
int putf(const char *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The file's text in a static buffer, "" if there is none. */
const char *get(const char *path);
/* Value of `key` in a file of `KEY[:] VALUE` lines, -1 if absent. */
long get_key(const char *path, const char *key);
/* For each directory in @dir: rmdir it. How many went. */
unsigned int empty(const char *dir);

/* ---- the machine (machine.c) ---- */

/* For its parameter mmap_abi: 2, by which all may choose, half of the time. */
unsigned int machine_abi(struct draw *d);
/* Load the module with these parameters, with its map. 0 or -errno. */
int machine_load(const char *params);
/* Remove groups and rules and unload, in up to @tries. 0 or -errno. */
int machine_unload(unsigned int tries);
/* No cgroup is frozen. */
void machine_thaw(void);
/* Everything that acts may have switched is as it was. false: memory stays offline. */
bool machine_restore(void);

/* Regions that the worker has; for task.c. */
void memory_touch(struct draw *d);

#endif /* FUZZ_H */
