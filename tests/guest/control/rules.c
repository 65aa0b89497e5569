/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rules (CAMC 3.4): a program that a rule names is in colour from its first
 * page, alone in its bank sets; a failed exec changes nothing; colours come
 * back when the program ends.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY	65534

/* ---- the program that rules are about: this one, under another name ---- */

/* Sets of the present pages from @start to @end. */
static void add_sets(int pagemap, unsigned long start, unsigned long end,
		     unsigned long *bits)
{
	for (; start < end; start += GUEST_PAGE) {
		u64 word = 0;
		int set = -1;

		if (pread(pagemap, &word, sizeof(word),
			  start / GUEST_PAGE * sizeof(word)) == sizeof(word) &&
		    word >> 63)
			set = guest_set_of(word & ((1ull << 55) - 1));
		if (set >= 0)
			sol_bit_set(bits, set);
	}
}

/* Bank sets that a process' private pages are in, as a list. */
static const char *sets_of(pid_t pid)
{
	static char list[4096];
	unsigned long bits[SOL_LONGS(1 << SOL_MAX_BANK_BITS)] = { 0 };
	unsigned long start, end;
	char path[64], line[512], perm[8];
	int pagemap;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	pagemap = open(path, O_RDONLY);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perm) == 3 &&
		    perm[3] == 'p' && !strstr(line, "[v"))
			add_sets(pagemap, start, end, bits);
	sol_list_print(bits, guest_map()->n_bank_sets, list, sizeof(list));
	if (maps)
		fclose(maps);
	close(pagemap);
	return list;
}

/* Say on fd 3 that it runs, then wait until fd 4 is closed: root looks then. */
static int ruled(void)
{
	char c;

	if (write(3, "x", 1) < 0)
		return 1;
	close(3);
	while (read(4, &c, 1) > 0)
		;
	return 0;
}

/* ---- running it ---- */

struct run {
	pid_t pid;
	int go;			/* close it and it ends */
	char sets[4096];
};

/*
 * In a child of NOBODY: become user @inside of a user namespace of its own, in which it
 * has more numbers (subuid(5)). run_as() writes these down.
 */
static void become_subordinate(uid_t inside)
{
	if (unshare(CLONE_NEWUSER) || raise(SIGSTOP) || setuid(inside))
		_exit(4);
}

static void map_subordinates(pid_t pid)
{
	char path[64], text[64];
	int fd, n, status;

	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		guest_die("a user namespace: status %#x", status);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	n = snprintf(text, sizeof(text), "0 %d 1\n1 100000 100\n", NOBODY);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, n) != n)
		guest_die("%s: %s", path, strerror(errno));
	close(fd);
	kill(pid, SIGCONT);
}

static uid_t subordinate;	/* not 0: run_as() runs this user in a namespace of NOBODY's */

static struct run run_as(uid_t uid, const char *path)
{
	struct run run = { 0 };
	int report[2], go[2];
	char c;

	if (pipe2(report, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		guest_die("pipe: %s", strerror(errno));
	run.pid = fork();
	if (!run.pid) {
		dup2(report[1], 30);
		dup2(go[0], 31);
		dup2(30, 3);
		dup2(31, 4);
		close(30);
		close(31);
		if (uid && setuid(uid))
			_exit(3);
		if (subordinate)
			become_subordinate(subordinate);
		execl(path, path, "ruled", NULL);
		_exit(2);
	}
	close(report[1]);
	close(go[0]);
	run.go = go[1];
	if (subordinate)
		map_subordinates(run.pid);
	if (read(report[0], &c, 1) == 1)
		snprintf(run.sets, sizeof(run.sets), "%s", sets_of(run.pid));
	close(report[0]);
	return run;
}

static int finish(struct run *run)
{
	int status = -1;

	close(run->go);
	waitpid(run->pid, &status, 0);
	return status;
}

static void copy_self(const char *to, mode_t mode)
{
	static char buf[1 << 20];
	int in = open("/proc/self/exe", O_RDONLY);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, mode);
	ssize_t n;

	while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			guest_die("copy to %s: %s", to, strerror(errno));
	if (in < 0 || out < 0 || fchmod(out, mode))
		guest_die("copy to %s: %s", to, strerror(errno));
	close(in);
	close(out);
}

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		guest_die("%s: %s", path, strerror(errno));
	close(fd);
}

static void rule_set(const char *file, const char *value)
{
	char path[128];
	int err;

	snprintf(path, sizeof(path), "rules/r/%s", file);
	err = guest_write(path, value);
	if (err)
		guest_die("%s < %s: %s (%s)", path, value, strerror(-err),
			  guest_status());
}

static long long matched(void)
{
	return guest_stat("rules/r/stats", "matched");
}

/* How many numbers a list names. */
static int list_count(const char *list)
{
	unsigned long bits[SOL_LONGS(1 << SOL_MAX_BANK_BITS)];
	struct sol_err err;
	u32 i, n = 0;

	if (sol_list_parse(list, strlen(list), guest_map()->n_bank_sets, bits,
			   &err))
		return -1;
	for (i = 0; i < guest_map()->n_bank_sets; i++)
		n += sol_bit(bits, i);
	return n;
}

static bool wait_for_implicit(long long n)
{
	int i;

	for (i = 0; i < 100; i++) {
		if (guest_stat("stats", "implicit") == n)
			return true;
		usleep(50000);
	}
	return false;
}

/*
 * Nobody runs and nothing is held: a frame of a process that ended stays in its
 * set while a batch of the kernel's (an LRU list's) has it, on any CPU.
 * Dropping caches empties those.
 */
static bool wait_for_nobody(void)
{
	bool nobody = wait_for_implicit(0);
	int i;

	for (i = 0; nobody && i < 100; i++) {
		if (!guest_stat("rules/r/stats", "held"))
			break;
		guest_set_kernel("/proc/sys/vm/drop_caches", "1");
		usleep(50000);
	}
	return nobody && i < 100;
}

/* ---- the checks ---- */

static void check_colored(const char *exe)
{
	struct run a = run_as(0, exe), b = run_as(0, exe);

	guest_check(list_count(a.sets) == 1, "rule-whole-process-in-one-set",
		    "in sets %s", a.sets);
	guest_check(list_count(b.sets) == 1 && strcmp(a.sets, b.sets),
		    "rule-processes-disjoint", "in sets %s and %s", a.sets,
		    b.sets);
	guest_check(matched() == 2, "rule-counts-matches", "%lld", matched());
	guest_check(guest_stat("stats", "implicit") == 2, "rule-implicit-groups",
		    "%lld", guest_stat("stats", "implicit"));
	finish(&a);
	finish(&b);
	guest_check(wait_for_implicit(0), "rule-groups-end-with-process",
		    "%lld left", guest_stat("stats", "implicit"));
}

/* The few pages of an uncoloured one may by chance be in one set. */
static bool is_coloured(pid_t pid)
{
	FILE *f = fopen(GUEST_ROOT "/implicit", "r");
	char line[128];
	bool found = false;
	int tid;

	if (!f)
		guest_die("implicit: %s", strerror(errno));
	while (fgets(line, sizeof(line), f))
		found |= sscanf(line, "task %d ", &tid) == 1 && tid == pid;
	fclose(f);
	return found;
}

static void check_others(const char *exe)
{
	struct run run = run_as(0, "./other");

	guest_check(!is_coloured(run.pid), "rule-other-path-uncoloured",
		    "in sets %s", run.sets);
	finish(&run);
	rule_set("uid", "1000");
	run = run_as(0, exe);
	guest_check(!is_coloured(run.pid), "rule-other-user-uncoloured",
		    "in sets %s", run.sets);
	finish(&run);
	run = run_as(1000, exe);
	guest_check(is_coloured(run.pid), "rule-user-coloured", "in sets %s",
		    run.sets);
	guest_check(matched() == 3, "rule-user-matches",
		    "%lld matched, %lld refused, '%s', program says '%s'",
		    matched(), guest_stat("rules/r/stats", "refused"),
		    guest_status(), run.sets);
	finish(&run);
	rule_set("uid", "any");
}

/*
 * Pages that this process gets now are in more than one set. As many as it takes, since
 * the frames of a group that ended are all of one set, and are handed out first: a whole
 * set of them where the kernel has no huge pages (PREEMPT_RT).
 */
static bool uncolored(void)
{
	size_t bytes = 160 << 20, at;
	char *p = guest_map_anon(bytes);
	bool mixed = false;
	int first = -1, set;

	for (at = 0; at < bytes && !mixed; at += GUEST_PAGE) {
		p[at] = 1;
		set = guest_set_of(guest_pfn(0, p + at));
		mixed = first >= 0 && set != first;
		first = set;
	}
	munmap(p, bytes);
	return mixed;
}

/* Found, matched, but not to be executed: the task is as it was. */
static void check_failed_exec(void)
{
	long long before = matched();
	int status;
	pid_t pid;

	copy_self("./ruled-notexec", 0644);
	put_file("./ruled-garbage", "\177ELF and no more");
	pid = fork();
	if (!pid) {
		execl("./ruled-notexec", "x", NULL);
		execl("./ruled-garbage", "x", NULL);
		execl("./ruled-absent", "x", NULL);
		_exit(is_coloured(getpid()) ? 1 : uncolored() ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	guest_check(status == 0 && matched() >= before + 1,
		    "rule-failed-exec-undone", "status %#x, %lld matches",
		    status, matched() - before);
	guest_check(wait_for_implicit(0), "rule-failed-exec-no-group",
		    "%lld left", guest_stat("stats", "implicit"));
}

static void check_script(void)
{
	long long before = matched();
	int status;
	pid_t pid;

	put_file("./ruled-script", "#!/bin/sh\nexit 7\n");
	pid = fork();
	if (!pid) {
		execl("./ruled-script", "x", NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	guest_check(WEXITSTATUS(status) == 7 && matched() == before + 1,
		    "rule-matches-script", "status %#x, %lld matches", status,
		    matched() - before);
}

/* Nothing is known of the path before it is executed. */
static void check_cold(const char *glob)
{
	long long before = matched();
	int status;
	pid_t pid;

	rule_set("path", "*/bin/false");
	guest_set_kernel("/proc/sys/vm/drop_caches", "3");
	pid = fork();
	if (!pid) {
		execl("/bin/false", "x", NULL);
		_exit(2);
	}
	waitpid(pid, &status, 0);
	guest_check(WEXITSTATUS(status) == 1 && matched() == before + 1,
		    "rule-matches-what-no-cache-knows",
		    "status %#x, %lld matches", status, matched() - before);
	rule_set("path", glob);
}

/* A group made by hand wins over a rule. */
static void check_precedence(const char *exe)
{
	struct run run;

	guest_group("hand", "1");
	if (guest_join("hand"))
		guest_die("join: %s", guest_status());
	run = run_as(0, exe);
	guest_check(!strcmp(run.sets, "1"), "rule-leaves-groups-alone",
		    "in sets %s", run.sets);
	finish(&run);
	if (guest_ungroup("hand"))
		guest_die("rmdir hand");
}

static void check_recycled(const char *exe)
{
	long long refused = guest_stat("rules/r/stats", "refused");
	struct run run;
	int i, good = 0, n = 2 * guest_map()->n_bank_sets;

	if (n > 40)
		n = 40;
	for (i = 0; i < n; i++) {
		run = run_as(0, exe);
		good += list_count(run.sets) == 1;
		finish(&run);
		wait_for_implicit(0);
	}
	guest_check(good == n, "rule-colours-recycled",
		    "%d of %d processes in colour, %lld refused", good, n,
		    guest_stat("rules/r/stats", "refused") - refused);
}

static void check_refused(const char *exe)
{
	char many[16];
	struct run run;

	snprintf(many, sizeof(many), "%u", guest_map()->n_bank_sets + 1);
	rule_set("colors", many);
	run = run_as(0, exe);
	guest_check(!is_coloured(run.pid) &&
		    guest_stat("rules/r/stats", "refused") > 0,
		    "rule-without-free-colours", "in sets %s, %lld refused",
		    run.sets, guest_stat("rules/r/stats", "refused"));
	finish(&run);
	rule_set("colors", "1");
}

/* How many of @n processes of @uid are coloured, all at once. */
static int coloured_of(uid_t uid, int n, const char *exe)
{
	struct run runs[64];
	int i, coloured = 0;

	for (i = 0; i < n; i++) {
		runs[i] = run_as(uid, exe);
		coloured += is_coloured(runs[i].pid);
	}
	for (i = 0; i < n; i++)
		finish(&runs[i]);
	return coloured;
}

/* The same of users that are all NOBODY's, in namespaces of its own. */
static int coloured_of_subordinates(int n, const char *exe)
{
	struct run runs[64];
	int i, coloured = 0;

	for (i = 0; i < n; i++) {
		subordinate = i + 1;
		runs[i] = run_as(NOBODY, exe);
		coloured += is_coloured(runs[i].pid);
	}
	subordinate = 0;
	for (i = 0; i < n; i++)
		finish(&runs[i]);
	return coloured;
}

/* Nobody takes all colours by running a rule's program again and again. */
static void check_limits(const char *exe)
{
	const int sets = guest_map()->n_bank_sets, n = sets + 8;
	long long limited;
	char text[32], told[256];
	int got;

	if (n > 64)
		return guest_skip("rule-limits", "the map has many bank sets");
	wait_for_nobody();
	snprintf(text, sizeof(text), "%d default\n", sets / 2);
	guest_check(!strcmp(guest_read("rules/r/limit"), text),
		    "rule-limit-default", "%s", guest_read("rules/r/limit"));
	/* From now on it is read as by any other thread: the last command's. */
	guest_check(guest_write("rules/r/limit", "none") == -EINVAL,
		    "rule-limit-word", "says '%s'", guest_status());
	snprintf(told, sizeof(told), "%s", guest_status());
	limited = guest_stat("rules/r/stats", "limited");
	got = coloured_of(0, n, exe);
	guest_check(got == sets / 2, "rule-limit", "%d of %d in colour", got,
		    n);
	limited = guest_stat("rules/r/stats", "limited") - limited;
	guest_check(limited == n - got, "rule-limit-counted", "%lld", limited);
	/* An exec is no command, and answers none. */
	guest_check(*told && !strcmp(guest_status(), told),
		    "rule-limit-not-told", "says '%s', not '%s'", guest_status(),
		    told);
	wait_for_nobody();
	got = coloured_of(NOBODY, n, exe);
	guest_check(got == sets / 4, "rule-user-limit", "%d of %d in colour",
		    got, n);
	guest_check(wait_for_nobody(), "rule-held", "%lld",
		    guest_stat("rules/r/stats", "held"));

	/* What is set holds, for whom it is; a limit below one process too. */
	rule_set("user_limit", "3");
	got = coloured_of(NOBODY, 6, exe);
	guest_check(got == 3, "rule-user-limit-set", "%d of 6", got);
	wait_for_nobody();
	got = coloured_of_subordinates(6, exe);
	guest_check(got == 3, "rule-user-limit-of-subordinates", "%d of 6", got);
	wait_for_nobody();
	rule_set("limit", "2");
	got = coloured_of(0, 6, exe);
	guest_check(got == 2, "rule-limit-set", "%d of 6", got);
	wait_for_nobody();
	rule_set("colors", "4");
	got = coloured_of(0, 1, exe);
	guest_check(got == 0, "rule-limit-below-colours", "%d of 1", got);
	rule_set("limit", "default");
	rule_set("user_limit", "default");
	rule_set("colors", "1");
	guest_check(guest_write("rules/r/limit", "0") == -EINVAL,
		    "rule-limit-zero", "says '%s'", guest_status());
}

/* Three times what a bank set holds. */
static const char *three_sets(void)
{
	static char text[32];
	size_t frames = 0;
	u32 llc;

	for (llc = 0; llc < guest_map()->n_llc; llc++)
		frames += sol_map_cell_frames(guest_map(), 0, llc);
	snprintf(text, sizeof(text), "%zu", frames * GUEST_PAGE * 3);
	return text;
}

static int greedy(const char *bytes)
{
	size_t n = strtoull(bytes, NULL, 10);

	guest_touch(guest_map_anon(n), n);
	return 0;
}

/* A ruled program of @uid that wants more than two bank sets: how it ends. */
static int greedy_of(uid_t uid, const char *exe)
{
	const char *bytes = three_sets();
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (uid && setuid(uid))
			_exit(1);
		execl(exe, exe, "greedy", bytes, NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	wait_for_implicit(0);
	return status;
}

/* Nor by growing. */
static void check_grow_limit(const char *exe)
{
	long long before = guest_stat("rules/r/stats", "limited");
	int status;

	rule_set("user_limit", "2");
	status = greedy_of(0, exe);
	guest_check(status == 0, "rule-root-grows", "status %#x", status);
	status = greedy_of(NOBODY, exe);
	guest_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
		    "rule-grows-to-its-limit", "status %#x", status);
	guest_check(guest_stat("rules/r/stats", "limited") > before,
		    "rule-growth-limited-counted", "%lld, before %lld",
		    guest_stat("rules/r/stats", "limited"), before);
	rule_set("user_limit", "default");
}

int main(int argc, char **argv)
{
	char exe[256], glob[300];

	if (argc == 2 && !strcmp(argv[1], "ruled"))
		return ruled();
	if (argc == 3 && !strcmp(argv[1], "greedy"))
		return greedy(argv[2]);
	if (!getcwd(exe, sizeof(exe) - 16))
		guest_die("getcwd");
	chmod(".", 0755);
	strcat(exe, "/ruled");
	copy_self(exe, 0755);
	copy_self("./other", 0755);

	if (mkdir(GUEST_ROOT "/rules/r", 0755))
		guest_die("mkdir rules/r: %s", guest_status());
	guest_check(guest_write("rules/r/enabled", "1") == -EINVAL,
		    "rule-incomplete-refused", "says '%s'", guest_status());
	snprintf(glob, sizeof(glob), "%s*", exe);
	rule_set("path", glob);
	rule_set("uid", "any");
	rule_set("enabled", "1");

	check_colored(exe);
	check_others(exe);
	check_failed_exec();
	check_script();
	check_cold(glob);
	check_precedence(exe);
	check_recycled(exe);
	check_refused(exe);
	check_limits(exe);
	check_grow_limit(exe);
	guest_check(rmdir(GUEST_ROOT "/rules/r") == 0, "rule-rmdir", "%s",
		    strerror(errno));
	return guest_exit();
}
