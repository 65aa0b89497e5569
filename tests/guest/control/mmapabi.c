/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The papers' mmap() calls: TintMalloc's colours of a thread, CAMC's registered
 * users. Skipped unless the module was loaded with mmap_abi.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"
#include "../../../kernel/uapi/soloist.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (1ul << 20)
#define PAGES ((long)(BYTES / GUEST_PAGE))

/* 0 or -errno; -1000 if it returned a mapping. */
static int call(long arg, size_t length)
{
	void *p = mmap((void *)arg, length,
		       PROT_READ | PROT_WRITE | COLOR_ALLOC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -errno : p ? -1000 : 0;
}

static int tint(int mode, u32 color)
{
	return call(color | mode, 0);
}

/* Fresh memory of this thread: pages in these colours, of 256. */
static long fresh_in(const char *sets, const char *llc)
{
	void *p = guest_map_anon(BYTES);
	long in;

	guest_touch(p, BYTES);
	in = guest_audit_range(p, BYTES, sets, llc).in;
	munmap(p, BYTES);
	return in;
}

static const char *set_list(u32 a, u32 b)
{
	static _Thread_local char list[32];

	snprintf(list, sizeof(list), "%u,%u", a < b ? a : b, a < b ? b : a);
	return list;
}

static void *other_thread(void *arg)
{
	const struct sol_map *map = guest_map();
	u32 bc = map->n_colors - 1, set = sol_map_color_set(map, bc);
	static char why[128];
	int err = tint(SET_MEM_COLOR, bc);
	long in = fresh_in(set_list(set, set), NULL);

	(void)arg;
	if (!err && in == PAGES)
		return NULL;
	snprintf(why, sizeof(why), "returned %d, %ld of %ld pages in set %u",
		 err, in, PAGES, set);
	return why;
}

static void check_threads(const char *sets)
{
	pthread_t thread;
	void *why = "no thread";

	if (!pthread_create(&thread, NULL, other_thread, NULL))
		pthread_join(thread, &why);
	guest_check(!why, "tint-thread-has-its-own", "%s", (char *)why);
	guest_check(fresh_in(sets, NULL) == PAGES,
		    "tint-thread-leaves-others-alone", "now elsewhere");
}

/*
 * Does this thread get pages in @set? What the lists of its other sets hold
 * goes first, so it takes until all that is listed could have been handed out.
 */
static bool comes_from(u32 set)
{
	size_t chunk = 2 * BYTES, held = 0;
	size_t most = guest_stat("stats", "listed") * GUEST_PAGE + chunk;
	char *p = guest_map_anon(most);
	bool found = false;

	while (!found && held + chunk <= most) {
		guest_touch(p + held, chunk);
		found = guest_audit_range(p + held, chunk, set_list(set, set),
					  NULL).in > 0;
		held += chunk;
	}
	munmap(p, most);
	return found;
}

static void check_tint(void)
{
	const struct sol_map *map = guest_map();
	u32 set0 = sol_map_color_set(map, 0), set1 = set0, bc = 0;
	int err;

	while (set1 == set0 && ++bc < map->n_colors)
		set1 = sol_map_color_set(map, bc);
	err = tint(SET_MEM_COLOR, 0);
	guest_check(!err, "tint-set", "returned %d, '%s'", err, guest_status());
	guest_check(fresh_in(set_list(set0, set0), NULL) == PAGES,
		    "tint-one-colour", "not all pages in set %u", set0);
	err = tint(SET_MEM_COLOR, bc);
	guest_check(!err && fresh_in(set_list(set0, set1), NULL) ==
			    PAGES,
		    "tint-calls-in-both", "returned %d, not in sets %s", err,
		    set_list(set0, set1));
	guest_check(comes_from(set1), "tint-calls-add-up",
		    "nothing in set %u", set1);
	check_threads(set_list(set0, set1));
	err = tint(CLEAR_MEM_COLOR, 0);
	guest_check(!err && fresh_in(set_list(set1, set1), NULL) ==
		    PAGES, "tint-clear", "returned %d", err);
	if (map->n_llc > 1) {
		tint(CLEAR_MEM_COLOR, bc);
		err = tint(SET_LLC_COLOR, 1);
		guest_check(!err && fresh_in(NULL, "1") == PAGES,
			    "tint-llc", "returned %d, '%s'", err,
			    guest_status());
		tint(CLEAR_LLC_COLOR, 1);
	} else {
		tint(CLEAR_MEM_COLOR, bc);
	}
	guest_check(fresh_in(set_list(set1, set1), NULL) < PAGES,
		    "tint-all-cleared-uncoloured", "still coloured");
}

static void refused(const char *name, int err, int want)
{
	guest_check(err == want && strcmp(guest_status(), "ok"), name,
		    "returned %d, says '%s'", err, guest_status());
}

static void check_refused(void)
{
	pid_t pid;
	int status;

	refused("abi-colour-out-of-range",
		tint(SET_MEM_COLOR, guest_map()->n_colors), -EINVAL);
	refused("abi-llc-out-of-range",
		tint(SET_LLC_COLOR, guest_map()->n_llc), -EINVAL);
	refused("abi-no-mode", call(5, 0), -EINVAL);
	refused("abi-mode-7", call(7L << COLOR_MODE_SHIFT, 4096), -EINVAL);
	refused("abi-address-above-32-bits",
		call(1L << 40 | SET_MEM_COLOR, 0), -EINVAL);
	refused("abi-tint-with-length", call(SET_MEM_COLOR, 4096), -EINVAL);
	refused("abi-camc-without-length", call(COLOR_ON, 0), -EINVAL);
	refused("abi-not-registered", call(COLOR_OFF, 4096), -ENOENT);
	if (guest_stat("features", "mmap_abi") != 1)
		return;
	pid = fork();
	if (!pid)
		_exit(setuid(65534) || tint(SET_MEM_COLOR, 0) != -EPERM);
	waitpid(pid, &status, 0);
	guest_check(status == 0, "abi-unprivileged-refused", "status %#x",
		    status);
}

/* What root is to read no other user's call replaces. */
static void check_sentences(void)
{
	pid_t pid;
	int status;

	guest_write("lists", "often");
	pid = fork();
	if (!pid)
		_exit(setuid(65534) || call(5, 0) >= 0);
	waitpid(pid, &status, 0);
	if (status)
		guest_die("a user's call: status %#x", status);
	pid = fork();
	if (!pid) {
		guest_check(!strncmp(guest_status(), "lists: ", 7), "abi-users-say-nothing-to-root",
			    "says '%s'", guest_status());
		_exit(guest_exit());
	}
	waitpid(pid, &status, 0);
	guest_check(!status, "abi-reader", "status %#x", status);
}

/* A rule for registered users colours nobody until one registers. */
static void check_camc(void)
{
	int err;

	if (mkdir(GUEST_ROOT "/rules/abi", 0755) ||
	    guest_write("rules/abi/path", "*/true") ||
	    guest_write("rules/abi/uid", "registered") ||
	    guest_write("rules/abi/enabled", "1"))
		guest_die("rule: %s", guest_status());
	err = system("/bin/true");
	guest_check(!err && guest_stat("rules/abi/stats", "matched") == 0,
		    "camc-unregistered-uncoloured", "%lld matched",
		    guest_stat("rules/abi/stats", "matched"));
	err = call(COLOR_ON + 2, 4096);
	guest_check(!err && guest_stat("stats", "registered") == 1, "camc-on",
		    "returned %d, '%s'", err, guest_status());
	err = system("/bin/true");
	guest_check(!err && guest_stat("rules/abi/stats", "matched") == 1,
		    "camc-registered-coloured", "%lld matched",
		    guest_stat("rules/abi/stats", "matched"));
	err = call(COLOR_OFF, 4096);
	guest_check(!err && guest_stat("stats", "registered") == 0, "camc-off",
		    "returned %d", err);
	rmdir(GUEST_ROOT "/rules/abi");
}

/* Calls that are none of ours do what they always did. */
static void check_stock(void)
{
	void *p = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int zero = p == MAP_FAILED ? errno : 0;

	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guest_check(zero == EINVAL && p != MAP_FAILED && p,
		    "abi-stock-calls-as-ever", "length 0: %d, page: %p", zero,
		    p);
}

int main(void)
{
	if (guest_stat("features", "mmap_abi") <= 0) {
		guest_skip("mmapabi", "the module is loaded without mmap_abi=1");
		return guest_exit();
	}
	check_stock();
	check_tint();
	check_refused();
	check_sentences();
	check_camc();
	return guest_exit();
}
