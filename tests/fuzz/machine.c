/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Acts on the whole machine: module, CPUs, cgroups, memory's own services. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MM	"/sys/kernel/mm/"

/* ---- the module ---- */

static int insert(const char *path, const char *params)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (syscall(SYS_finit_module, fd, params, 0))
		err = -errno;
	close(fd);
	return err;
}

/* The module that asks firmware lies beside the other. */
static int insert_both(const char *params)
{
	char firmware[256];
	int err = insert(fuzz->module, params);

	snprintf(firmware, sizeof(firmware), "%.*s-firmware.ko",
		 (int)strlen(fuzz->module) - 3, fuzz->module);
	return err ?: insert(firmware, "");
}

int machine_load(const char *params)
{
	int err;

	if (fuzz->without)
		return 0;
	err = insert_both(params);
	return err ?: put(FUZZ_ROOT "/map", fuzz->map, fuzz->map_len);
}

int machine_unload(unsigned int tries)
{
	while (tries--) {
		empty(FUZZ_ROOT "/groups");
		empty(FUZZ_ROOT "/rules");
		syscall(SYS_delete_module, "soloist_firmware", O_NONBLOCK);
		if (!syscall(SYS_delete_module, "soloist", O_NONBLOCK))
			return 0;
		if (errno != EWOULDBLOCK && errno != EBUSY)
			return -errno;
		usleep(1000);
	}
	return -EBUSY;
}

unsigned int machine_abi(struct draw *d)
{
	unsigned int abi = draw(d, 4);

	return abi == 3 ? 2 : abi;
}

/* Now and then as on a kernel that lacks something, with which it may not load. */
static bool reload(struct draw *d)
{
	static const char *const lacks[] = {
		"alloc_migration_target", "folio_alloc_swap", "ksm_madvise",
		"alloc_charge_folio", "ksys_mmap_pgoff", "migrate_pages",
	};
	unsigned int abi = machine_abi(d), tries = 1 + draw(d, 100);
	unsigned int lack = draw(d, sizeof(lacks) / sizeof(*lacks));
	unsigned int wait = draw(d, 2) ? draw(d, 20000) : 0;
	bool lacking = draw_one_in(d, 4);
	char params[128];
	int err;

	err = machine_unload(tries);
	usleep(wait);
	if (lacking) {
		snprintf(params, sizeof(params), "mmap_abi=%u lack=%s", abi,
			 lacks[lack]);
		if (!machine_load(params))
			return !err;
	}
	snprintf(params, sizeof(params), "mmap_abi=%u", abi);
	return !machine_load(params) && !err;
}

/* ---- CPUs ---- */

static bool plug(struct draw *d)
{
	unsigned int cpu = 1 + draw(d, FUZZ_CPUS - 1), on = draw(d, 2);
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	return !putf(path, "%u", on);
}

/* ---- cgroups ---- */

static const char *const cgroups[] = { "/fuzz0", "/fuzz1", "/fuzz0/in", "" };

static const char *draw_cgroup(struct draw *d, char *path, size_t size,
			       const char *file)
{
	snprintf(path, size, FUZZ_CGROUPS "%s/%s", cgroups[draw(d, 3)], file);
	return path;
}

static bool make_cgroup(struct draw *d)
{
	char path[96];

	return !mkdir(draw_cgroup(d, path, sizeof(path), ""), 0755);
}

static bool remove_cgroup(struct draw *d)
{
	char path[96];

	return !rmdir(draw_cgroup(d, path, sizeof(path), ""));
}

/* Itself or another, into one or out of all. */
static bool move_cgroup(struct draw *d)
{
	unsigned int worker = draw(d, FUZZ_WORKERS), to = draw(d, 4);
	bool self = draw(d, 3);
	char path[96];

	snprintf(path, sizeof(path), FUZZ_CGROUPS "%s/cgroup.procs", cgroups[to]);
	return !putf(path, "%d", self ? 0 : fuzz->pid[worker]);
}

static bool set_cgroup(struct draw *d)
{
	static const struct { const char *file, *values[3]; } files[] = {
		{ "cgroup.subtree_control", { "+memory", "+cpuset", "-memory -cpuset" } },
		{ "memory.max", { "max", "64M", "16M" } },
		{ "memory.swap.max", { "max", "0", "8M" } },
		{ "cpuset.mems", { "0", "1", "0-1" } },
		{ "cpuset.cpus", { "0-3", "1", "0,2" } },
		{ "memory.reclaim", { "1M", "16M", "64K" } },
	};
	unsigned int at = draw(d, sizeof(files) / sizeof(*files));
	const char *value = files[at].values[draw(d, 3)];
	char path[96];

	return !put(draw_cgroup(d, path, sizeof(path), files[at].file), value, 0);
}

/* By one that is in none and can't be frozen with it; fuzz.c thaws as well. */
static bool freeze(struct draw *d)
{
	unsigned int wait = draw(d, 3000);
	char path[96];
	int status;
	pid_t pid;

	draw_cgroup(d, path, sizeof(path), "cgroup.freeze");
	pid = fork();
	if (!pid) {
		if (put(FUZZ_CGROUPS "/cgroup.procs", "0", 0) ||
		    put(path, "1", 0))
			_exit(1);
		usleep(wait);
		_exit(put(path, "0", 0) != 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* ---- memory's services ---- */

static bool set_memory(struct draw *d)
{
	static const struct { const char *file, *values[3]; } files[] = {
		{ MM "transparent_hugepage/enabled", { "always", "madvise", "never" } },
		/* 0: it never sleeps, and whoever waits for RCU-tasks never ends. */
		{ MM "transparent_hugepage/khugepaged/scan_sleep_millisecs", { "1", "10", "1000" } },
		{ MM "ksm/run", { "0", "1", "2" } },
		{ MM "ksm/sleep_millisecs", { "0", "10", "100" } },
		{ MM "numa/demotion_enabled", { "0", "1", "0" } },
		{ "/proc/sys/kernel/numa_balancing", { "0", "1", "2" } },
		{ "/proc/sys/vm/nr_hugepages", { "0", "2", "8" } },
		{ "/proc/sys/vm/min_free_kbytes", { "1024", "8192", "45056" } },
		{ "/proc/sys/vm/swappiness", { "0", "60", "200" } },
		{ "/proc/sys/vm/percpu_pagelist_high_fraction", { "0", "8", "100" } },
	};
	unsigned int at = draw(d, sizeof(files) / sizeof(*files));

	return !put(files[at].file, files[at].values[draw(d, 3)], 0);
}

static bool drop_caches(struct draw *d)
{
	return !putf("/proc/sys/vm/drop_caches", "%u", 1 + draw(d, 3));
}

/* Page cache fills memory, or some of it, and stays. */
static bool fill_cache(struct draw *d)
{
	unsigned int from = draw(d, 2048), mib = 1 + draw(d, 400);
	int fd = open("/dev/nullb0", O_RDONLY | O_CLOEXEC);
	static char buf[1 << 20];
	bool done = false;

	for (; fd >= 0 && mib--; from++)
		done = pread(fd, buf, sizeof(buf), (off_t)from << 20) > 0;
	if (fd >= 0)
		close(fd);
	return done;
}

static bool compact(struct draw *d)
{
	char path[64];

	if (draw(d, 2))
		return !put("/proc/sys/vm/compact_memory", "1", 0);
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/compact",
		 draw(d, 2));
	return !put(path, "1", 0);
}

/*
 * A block of memory goes, and comes back. The kernel tries until a signal comes:
 * pages of the block may be pinned.
 */
static bool offline_memory(struct draw *d)
{
	unsigned int block = 1 + draw(d, 15), wait = draw(d, 5000);
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/sys/devices/system/memory/memory%u/state",
		 block);
	pid = fork();
	if (!pid) {
		alarm(10);
		_exit(put(path, "offline", 0) != 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	usleep(wait);
	put(path, "online", 0);
	return !status;
}

void machine_thaw(void)
{
	char path[96];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), FUZZ_CGROUPS "%s/cgroup.freeze",
			 cgroups[i]);
		if (!access(path, F_OK))
			put(path, "0", 0);
	}
}

/* A block with a frame that failed stays offline. So does the kernel alone. */
static bool back_online(int block)
{
	char path[96];
	int err;

	snprintf(path, sizeof(path), "/sys/devices/system/memory/memory%d/state", block);
	err = put(path, "online", 0);
	if (err == -ENOENT || err == -EHWPOISON || !strncmp(get(path), "online", 6))
		return true;
	printf("FAIL online: memory block %d: %s\n", block, strerror(-err));
	return false;
}

bool machine_restore(void)
{
	bool good = true;
	char path[96];
	int i;

	for (i = 1; i < FUZZ_CPUS; i++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/online", i);
		put(path, "1", 0);
	}
	for (i = 1; i < 16; i++)
		good &= back_online(i);
	put(MM "ksm/run", "2", 0);
	put("/proc/sys/vm/nr_hugepages", "0", 0);
	put("/proc/sys/vm/percpu_pagelist_high_fraction", "0", 0);
	put("/proc/sys/vm/min_free_kbytes", "8192", 0);
	put("/sys/kernel/tracing/events/soloist/enable", "0", 0);
	for (i = 2; i >= 0; i--) {
		snprintf(path, sizeof(path), FUZZ_CGROUPS "%s", cgroups[i]);
		rmdir(path);
	}
	return good;
}

const struct act machine_acts[] = {
	{ "reload", 1, reload },
	{ "cpu-hotplug", 2, plug },
	{ "make-cgroup", 4, make_cgroup },
	{ "remove-cgroup", 2, remove_cgroup },
	{ "move-cgroup", 6, move_cgroup },
	{ "set-cgroup", 5, set_cgroup },
	{ "freeze", 1, freeze },
	{ "set-memory", 3, set_memory },
	{ "drop-caches", 1, drop_caches },
	{ "fill-cache", 2, fill_cache },
	{ "compact", 1, compact },
	{ "offline-memory", 1, offline_memory },
	{ NULL, 0, NULL },
};
