/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Occupancy: who holds the memory of a group's colours, on a machine that is nearly
 * empty and on one that a stranger and page cache fill. What pagemap says of the
 * stranger is the measure.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SET	3
#define FILE_OF	"groups/mine/occupancy"
#define STRANGER	(300ul << 20)
#define CACHE	(64ul << 20)
#define NOBODY	65534

/* A process that did what it was told, and waits for its end. */
struct servant {
	pid_t pid;
	int ready[2];
	int end[2];
};

static struct servant serve(const char *group, size_t bytes, bool lock)
{
	struct servant s;
	char c = 1, *p;

	if (pipe(s.ready) || pipe(s.end))
		guest_die("pipe");
	s.pid = fork();
	if (s.pid)
		goto parent;
	if (group && guest_join(group))
		_exit(1);
	p = guest_map_anon(bytes);
	if (!lock)
		madvise(p, bytes, MADV_NOHUGEPAGE);
	guest_touch(p, bytes);
	if (lock && mlock(p, bytes))
		_exit(1);
	memset(p, 0, 1);
	/* The parent looks at it through pagemap: it says where. */
	if (write(s.ready[1], &p, sizeof(p)) != sizeof(p))
		_exit(1);
	close(s.end[1]);
	if (read(s.end[0], &c, 1))
		_exit(1);
	_exit(0);
parent:
	close(s.ready[1]);
	close(s.end[0]);
	return s;
}

/* Its pages in the set that is looked at. */
static long in_set(struct servant *s, size_t bytes)
{
	long n = 0;
	char *p;
	size_t i;

	if (read(s->ready[0], &p, sizeof(p)) != sizeof(p))
		guest_die("the servant failed: %s", guest_status());
	for (i = 0; i < bytes; i += GUEST_PAGE)
		n += guest_set_of(guest_pfn(s->pid, p + i)) == SET;
	return n;
}

static void dismiss(struct servant *s)
{
	close(s->end[1]);
	close(s->ready[0]);
	waitpid(s->pid, NULL, 0);
}

static long long of(const char *text, const char *key)
{
	return guest_stat_in(text, key);
}

static long long held(const char *key)
{
	return of(guest_read(FILE_OF), key);
}

/* Two numbers of pages that differ by what the system does meanwhile. */
static bool near(long long a, long long b)
{
	long long diff = a > b ? a - b : b - a;

	return diff <= 256 + b / 20;
}

static void adds_up(void)
{
	static const char *const keys[] = {
		"own", "groups", "anon", "mapped", "cache", "kernel", "listed",
		"free",
	};
	const struct sol_map *map = guest_map();
	const char *text = guest_read(FILE_OF);
	long long sum = 0, frames = 0;
	unsigned int i;

	for (i = 0; i < map->n_llc; i++)
		frames += sol_map_cell_frames(map, SET, i);
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		sum += of(text, keys[i]);
	guest_check(sum == frames && of(text, "looked") == frames &&
		    of(text, "one_of") == 1,
		    "occupancy-adds-up", "%lld of %lld frames: %s", sum, frames,
		    text);
	printf("# %lld frames took %lld us\n", frames, of(text, "took_us"));
}

static void stranger(void)
{
	long long before = held("anon"), after;
	struct servant s = serve(NULL, STRANGER, false);
	long there = in_set(&s, STRANGER);

	after = held("anon");
	guest_check(there > 100 && near(after - before, there),
		    "occupancy-stranger", "%lld pages, pagemap says %ld",
		    after - before, there);
	adds_up();
	dismiss(&s);
}

static void locked(void)
{
	long long before = held("unevictable"), after;
	struct servant s = serve(NULL, CACHE, true);
	long there = in_set(&s, CACHE);

	after = held("unevictable");
	guest_check(there > 100 && near(after - before, there),
		    "occupancy-locked", "%lld pages, pagemap says %ld",
		    after - before, there);
	dismiss(&s);
}

static void members(const char *group, const char *key)
{
	struct servant s = serve(group, 2048 * GUEST_PAGE, false);
	long there = in_set(&s, 2048 * GUEST_PAGE);
	long long now = held(key);

	guest_check(there == 2048 && now >= there && near(now, there),
		    !strcmp(key, "own") ? "occupancy-own" : "occupancy-groups",
		    "%s %lld, pagemap says %ld", key, now, there);
	dismiss(&s);
}

/* Pages of a file that nobody maps, then the same mapped. */
static void cache(void)
{
	long long before = held("cache"), mapped = held("mapped"), after;
	int fd = memfd_create("cache", 0);
	char *p = guest_map_anon(CACHE);
	long long want;
	size_t i;

	memset(p, 1, CACHE);
	if (fd < 0 || write(fd, p, CACHE) != (ssize_t)CACHE)
		guest_die("memfd");
	munmap(p, CACHE);
	after = held("cache") - before;
	p = mmap(NULL, CACHE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	for (i = 0, want = 0; i < CACHE; i += GUEST_PAGE)
		want += guest_set_of(guest_pfn(0, p + i)) == SET;
	guest_check(want > 100 && near(after, want), "occupancy-cache",
		    "%lld pages, pagemap says %lld", after, want);
	after = held("mapped") - mapped;
	guest_check(near(after, want), "occupancy-mapped",
		    "%lld pages, pagemap says %lld", after, want);
	munmap(p, CACHE);
	close(fd);
}

static void not_for_all(void)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", GUEST_ROOT, FILE_OF);
	guest_check(!stat(path, &st) && (st.st_mode & 0777) == 0400,
		    "occupancy-is-roots", "mode %o", st.st_mode & 0777);
}

static void no_colors(void)
{
	guest_group("none", NULL);
	guest_check(guest_stat("groups/none/occupancy", "looked") == 0,
		    "occupancy-of-no-colours", "%s",
		    guest_read("groups/none/occupancy"));
	guest_ungroup("none");
}

/* On the set's node, so that memory comes from there. */
static void be_near(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		guest_die("sched_setaffinity");
}

int main(void)
{
	char set[16];

	be_near();

	snprintf(set, sizeof(set), "%d", SET);
	guest_group("mine", set);
	guest_group("other", set);
	adds_up();
	stranger();
	locked();
	cache();
	members("mine", "own");
	members("other", "groups");
	not_for_all();
	no_colors();
	guest_ungroup("other");
	guest_ungroup("mine");
	return guest_exit();
}
