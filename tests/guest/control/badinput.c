/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Wrong input to every file of the control interface: an errno, a sentence,
 * nothing half-applied, never an oops.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Refused by every file that takes lists, words or numbers. */
static const char *const bad[] = {
	"-1", "99999999", "4294967296", "18446744073709551616", "0-", "-", ",",
	"3-1", "0-3,,5", "0x", "no such thing", "\n\n", "0;1", "\xff\xfe\x01",
	"1e9", "0-99999999999999999999", "../../..", "%s%s%s%n",
};

static const char *const group_files[] = {
	"dram_bank", "bank_set", "llc_color", "node", "auto", "mode",
	"exhaust", "reserve", "tasks", "procs",
};

/* A word that each of these takes. */
static const struct {
	const char *file, *word;
} good[] = {
	{ "dram_bank", "3" }, { "bank_set", "2" }, { "llc_color", "1" }, { "node", "1" },
	{ "auto", "1" }, { "mode", "exclusive" }, { "exhaust", "spill" }, { "text", "all" },
	{ "ephemeral", "1" }, { "reserve", "64K" }, { "tasks", "0" }, { "procs", "0" },
	{ "evict", "1" }, { "recolor", "0" },
};

static char *copy(const char *path)
{
	return strdup(guest_read(path));
}

static void bytes(const char *dir, const char *file, const char *value, size_t size)
{
	char path[256], name[384], *before, *after;
	int err;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	before = copy(path);
	err = guest_write_bytes(path, value, size);
	after = copy(path);
	snprintf(name, sizeof(name), "refused-%s-%.24s", file, value);
	for (char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '.';
	guest_check(err < 0 && !strcmp(before, after) &&
		    strcmp(guest_status(), "ok") && strlen(guest_status()) > 8,
		    name, "returned %d, says '%s', %s", err, guest_status(),
		    strcmp(before, after) ? "changed the file" : "file unchanged");
	free(before);
	free(after);
}

static void one(const char *dir, const char *file, const char *value)
{
	bytes(dir, file, value, strlen(value));
}

/* The text behind a NUL would be lost: nothing of such a text counts. */
static void with_nul(const char *dir, const char *file, const char *word)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%s", word);

	n += snprintf(text + n + 1, sizeof(text) - n - 1, "\n%s\n", word) + 1;
	bytes(dir, file, text, n);
}

static void long_write(const char *path)
{
	size_t n = 200 * 1024;
	char *text = malloc(n + 1), name[300];
	int err;

	memset(text, '1', n);
	text[n] = 0;
	err = guest_write(path, text);
	snprintf(name, sizeof(name), "refused-200-KiB-%s", path);
	guest_check(err < 0, name, "returned %d", err);
	free(text);
}

static void no_privilege(void)
{
	pid_t pid = fork();

	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(guest_write("groups/bad/bank_set", "0") ? 0 : 1);
	}
	int status = 1;

	waitpid(pid, &status, 0);
	guest_check(status == 0, "refused-without-privilege", "status %#x",
		    status);
}

/* A child that can join, and an id that is refused with @says: neither joins. */
static void joins_whole(const char *file, int refused, int want, const char *says)
{
	char path[64], name[64], *members;
	pid_t pid = fork();
	int err;

	if (!pid) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "groups/bad/%s", file);
	snprintf(name, sizeof(name), "joins-whole-%s-%d", file, refused);
	err = guest_writef(path, "%d\n0\n%d\n", pid, refused);
	members = copy("groups/bad/members");
	guest_check(err == want && strstr(guest_status(), says) && !*members, name,
		    "returned %d, says '%s', in: '%s'", err, guest_status(), members);
	free(members);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A map of 64 ranges: as written it fits into a file, as it would be read it does not. */
static void long_map(const char *before)
{
	unsigned long long start, base;
	char text[4096];
	int n, i, err;

	n = sprintf(text, "soloist-map 1\nlayout\nbank 15\n");
	for (i = 0; i < 64; i++) {
		start = 0xf000000000000 + i * 0x200000ull;
		base = 0xe000000000000 + i * 0x100000ull;
		n += sprintf(text + n, "range %#llx %#llx base %#llx\n", start,
			     start + 0x100000, base);
	}
	err = guest_write("map", text);
	guest_check(err == -EFBIG && strstr(guest_status(), "join ranges"), "long-map-refused",
		    "%d bytes: returned %d, %s", n, err, guest_status());
	guest_check(!strcmp(before, guest_read("map")), "long-map-changes-nothing", "now '%.60s'",
		    guest_read("map"));
}

/* A map may know more memory than the machine has: it costs nothing. */
static void far_map(const char *before)
{
	char text[4096], *copy = strdup(before), *line, *rest = copy;
	int n, err, i;

	/* Pages of the removed group may be on their way. */
	for (i = 0; i < 100 && guest_stat("stats", "removed"); i++)
		usleep(100000);
	n = sprintf(text, "soloist-map 1\nlayout\nbank 15\n");
	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, "range ", 6))
			n += sprintf(text + n, "%s\n", line);
	sprintf(text + n, "range 0x8000000000000 0x10000000000000 node 0 base 0x8000000000000\n");
	err = guest_write("map", text);
	guest_check(!err, "far-map-taken", "returned %d, %s", err, guest_status());
	err = guest_write("map", before);
	guest_check(!err && !strcmp(before, guest_read("map")), "far-map-goes", "returned %d, %s",
		    err, guest_status());
	free(copy);
}

int main(void)
{
	char *map = copy("map");
	size_t i, j;
	int err;

	guest_group("bad", "0-1");
	for (i = 0; i < sizeof(group_files) / sizeof(*group_files); i++) {
		for (j = 0; j < sizeof(bad) / sizeof(*bad); j++)
			one("groups/bad", group_files[i], bad[j]);
		char path[64];

		snprintf(path, sizeof(path), "groups/bad/%s", group_files[i]);
		long_write(path);
	}
	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		with_nul("groups/bad", good[i].file, good[i].word);
	with_nul("", "lists", "drain");
	/* A number of 26 digits, of which the first 20 are another one. */
	guest_write("groups/bad/reserve", "64K");
	one("groups/bad", "reserve", "00000000000000000000065536");
	guest_write("groups/bad/reserve", "0");
	for (j = 0; j < sizeof(bad) / sizeof(*bad); j++)
		one("", "lists", bad[j]);
	err = guest_write("map", "soloist-map 1\nname other\n");
	guest_check(err < 0 && !strcmp(map, guest_read("map")),
		    "map-refused-while-groups-exist", "returned %d", err);
	for (i = 0; i < 2; i++) {
		joins_whole(i ? "procs" : "tasks", 999999, -ESRCH, "there is no");
		/* Of the kernel. */
		joins_whole(i ? "procs" : "tasks", 2, -EINVAL, "kernel thread");
	}
	no_privilege();
	guest_check(guest_ungroup("bad") == 0, "rmdir", "failed");

	/* Without groups the map may change, but not to nonsense. */
	for (j = 0; j < sizeof(bad) / sizeof(*bad); j++)
		one("", "map", bad[j]);
	guest_check(!strcmp(map, guest_read("map")), "map-unchanged",
		    "now '%.60s'", guest_read("map"));
	long_map(map);
	far_map(map);
	free(map);
	return guest_exit();
}
