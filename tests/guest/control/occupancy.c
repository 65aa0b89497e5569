/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Occupancy: who holds the memory of a group's colours, on a machine that is nearly
 * empty and on one that a stranger and page cache fill. What pagemap says of the
 * stranger is the measure. Of a large machine, which this one is taken for at the end, a
 * sample is read; all is looked at when asked for.
 */
#include "servant.h"

#include <errno.h>
#include <sys/stat.h>

#define SET	3
#define FILE_OF	"groups/mine/occupancy"
#define ALL	"groups/mine/occupancy_all"
#define SAMPLE	"/sys/module/soloist/parameters/occupancy_sample"
#define STRANGER	(300ul << 20)
#define CACHE	(64ul << 20)

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

/* @name: what is checked of @file */
static void adds_up(const char *name, const char *file)
{
	static const char *const keys[] = {
		"own", "groups", "anon", "mapped", "cache", "kernel", "listed",
		"free",
	};
	const struct sol_map *map = guest_map();
	const char *text = guest_read(file);
	long long sum = 0, frames = 0;
	unsigned int i;

	for (i = 0; i < map->n_llc; i++)
		frames += sol_map_cell_frames(map, SET, i);
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		sum += of(text, keys[i]);
	guest_check(sum == frames && of(text, "looked") == frames &&
		    of(text, "one_of") == 1,
		    name, "%lld of %lld frames: %s", sum, frames,
		    text);
	printf("# %lld frames took %lld us\n", frames, of(text, "took_us"));
}

static void stranger(void)
{
	long long before = held("anon"), after;
	struct servant s = serve(NULL, STRANGER, 0);
	long there = servant_in(&s, SET);

	after = held("anon");
	guest_check(there > 100 && near(after - before, there),
		    "occupancy-stranger", "%lld pages, pagemap says %ld",
		    after - before, there);
	adds_up("occupancy-with-stranger-adds-up", FILE_OF);
	dismiss(&s);
}

static void locked(void)
{
	long long before = held("unevictable"), after;
	struct servant s = serve(NULL, CACHE, SERVE_LOCKED);
	long there = servant_in(&s, SET);

	after = held("unevictable");
	guest_check(there > 100 && near(after - before, there),
		    "occupancy-locked", "%lld pages, pagemap says %ld",
		    after - before, there);
	dismiss(&s);
}

static void members(const char *group, const char *key)
{
	struct servant s = serve(group, 2048 * GUEST_PAGE, 0);
	long there = servant_in(&s, SET);
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

static void not_for_all(const char *file, mode_t mode)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", GUEST_ROOT, file);
	guest_check(!stat(path, &st) && (st.st_mode & 0777) == mode,
		    "occupancy-is-roots", "%s: mode %o", file, st.st_mode & 0777);
}

/* Words that ask for nothing; and no look has been asked for yet. */
static void not_asked(void)
{
	static const char *const words[] = { "0", "2", "all", "1 1" };
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		guest_check(guest_write(ALL, words[i]) == -EINVAL,
			    "occupancy-all-refuses", "'%s': %s", words[i],
			    guest_status());
	guest_check(guest_stat(ALL, "one_of") == 0 &&
		    guest_stat(ALL, "looked") == 0,
		    "occupancy-all-not-asked", "%s", guest_read(ALL));
}

static void whole(void)
{
	struct servant s;
	long long before, looked;
	long there;

	guest_set_kernel(SAMPLE, "64");
	not_asked();
	looked = held("looked");
	guest_check(held("one_of") > 2 && looked > 0, "occupancy-samples",
		    "%s", guest_read(FILE_OF));
	guest_check(!guest_write(ALL, "1"), "occupancy-all", "%s",
		    guest_status());
	adds_up("occupancy-all-adds-up", ALL);
	guest_check(guest_stat(ALL, "looked") > 2 * looked,
		    "occupancy-all-is-more", "%lld frames were a sample, %s",
		    looked, guest_read(ALL));
	before = guest_stat(ALL, "anon");
	s = serve(NULL, STRANGER, 0);
	there = servant_in(&s, SET);
	guest_check(guest_stat(ALL, "anon") == before,
		    "occupancy-all-is-a-report", "%s", guest_read(ALL));
	guest_check(!guest_write(ALL, "1") &&
		    near(guest_stat(ALL, "anon") - before, there),
		    "occupancy-all-anew", "%lld pages, pagemap says %ld",
		    guest_stat(ALL, "anon") - before, there);
	dismiss(&s);
	guest_set_kernel(SAMPLE, "4096");
}

static void no_colors(void)
{
	guest_group("none", NULL);
	guest_check(guest_stat("groups/none/occupancy", "looked") == 0,
		    "occupancy-of-no-colours", "%s",
		    guest_read("groups/none/occupancy"));
	guest_ungroup("none");
}

int main(void)
{
	char set[16];

	guest_run_on(0);	/* memory comes from node 0 */

	snprintf(set, sizeof(set), "%d", SET);
	guest_group("mine", set);
	guest_group("other", set);
	adds_up("occupancy-adds-up", FILE_OF);
	stranger();
	locked();
	cache();
	members("mine", "own");
	members("other", "groups");
	not_for_all(FILE_OF, 0400);
	not_for_all(ALL, 0600);
	whole();
	no_colors();
	guest_ungroup("other");
	guest_ungroup("mine");
	return guest_exit();
}
