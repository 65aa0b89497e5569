/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Figures and settings of the stock kernel: files of /proc and /sys. */
#ifndef KERNEL_H
#define KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Write a setting. 0 or -errno; many kernels lack some. */
static inline int set_kernel(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/*
 * The number behind @key in a file of `key value` or `key: value` lines, or the first
 * (NULL); -1: there is none.
 */
static inline long long kernel_number(const char *path, const char *key)
{
	const size_t length = key ? strlen(key) : 0;
	FILE *f = fopen(path, "r");
	long long value = -1;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (key && (strncmp(line, key, length) || !strchr(" :\t", line[length])))
			continue;
		value = atoll(line + length + strspn(line + length, " :\t"));
		break;
	}
	if (f)
		fclose(f);
	return value;
}

/*
 * The sum of the zones' figures @which ("min", "low", "cma"), KiB, as they are now, of @node; -1:
 * of all nodes.
 */
static inline long long kernel_zones(const char *which, int node)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	char line[256], key[16];
	long long value, pages = 0;
	int of = -1;

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Node %d,", &of);
		if ((node < 0 || of == node) &&
		    sscanf(line, " %15s %lld", key, &value) == 2 && !strcmp(key, which))
			pages += value;
	}
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

/*
 * How far the free memory of a zone is below its low watermark, pages: the largest of all
 * zones, 0: none is. Memory of CMA does not count, since it is free for movable pages alone.
 */
static inline long long kernel_below_low(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	long long value, most = 0, low = 0, free = 0;
	char line[256], key[32];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " pages free %lld", &value) == 1)
			free = value;
		else if (sscanf(line, " %31s %lld", key, &value) != 2)
			continue;
		else if (!strcmp(key, "low"))
			low = value;
		else if (!strcmp(key, "nr_free_cma") && low - (free - value) > most)
			most = low - (free - value);
	}
	if (f)
		fclose(f);
	return most;
}

/* MiB behind @key in /proc/meminfo. */
static inline long meminfo(const char *key)
{
	return kernel_number("/proc/meminfo", key) / 1024;
}

#endif /* KERNEL_H */
