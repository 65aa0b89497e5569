/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Recolour: what a running process has already comes into its group's colours: heap,
 * stack, data and text; in huge pages, locked, on its way to swap; while its threads
 * write to it, while it forks and while it ends.
 */
#include "servant.h"

#include <errno.h>
#include <pthread.h>

#define MINE	"groups/mine/"
#define BYTES	(32ul << 20)

/* The group's colour. */
static int set = 3;

static int recolor(pid_t pid)
{
	int err = guest_writef(MINE "recolor", "%d", pid);
	char text[1024], *at;

	snprintf(text, sizeof(text), "%s", guest_read(MINE "recolor"));
	while ((at = strchr(text, '\n')))
		*at = ' ';
	printf("# %s\n", text);
	return err;
}

static long long report(const char *key)
{
	return guest_stat(MINE "recolor", key);
}

static void join(pid_t pid)
{
	if (guest_writef(MINE "procs", "%d", pid))
		guest_die("procs: %s", guest_status());
}

/* The group gets a colour that @s has little of: frames freed last may all be of one. */
static void choose_set(const struct servant *s)
{
	set = servant_in(s, 3) < servant_in(s, 9) ? 3 : 9;
	if (guest_writef(MINE "bank_set", "%d", set))
		guest_die("bank_set: %s", guest_status());
}

/* A process that runs in no group, joins and is recoloured. */
static void running(const char *name, int how)
{
	struct servant s = serve(NULL, BYTES, how);
	long all = s.bytes / GUEST_PAGE, before, after;
	char what[64];
	int err;

	choose_set(&s);
	before = servant_in(&s, set);
	join(s.pid);
	err = recolor(s.pid);
	after = servant_in(&s, set);
	snprintf(what, sizeof(what), "recolor-%s", name);
	guest_check(!err && before < all / 2 && after >= all - all / 100, what,
		    "%d %s: %ld of %ld pages in colour, %ld before", err,
		    guest_status(), after, all, before);
	snprintf(what, sizeof(what), "recolor-%s-counted", name);
	guest_check(report("moved") + report("in_place") >= after - before &&
		    guest_stat(MINE "stats", "pages") >= after, what,
		    "moved %lld, the group has %lld", report("moved"),
		    guest_stat(MINE "stats", "pages"));
	snprintf(what, sizeof(what), "recolor-%s-content", name);
	guest_check(dismiss(&s), what, "it changed");
}

/* So few pages that all wait in a CPU's batch for their LRU lists; nothing comes after them. */
static void waiting(void)
{
	struct servant s;
	long after, all;
	int err;

	guest_run_on(2);
	s = serve(NULL, 16 * GUEST_PAGE, 0);
	guest_run_on(0);
	all = s.bytes / GUEST_PAGE;
	choose_set(&s);
	join(s.pid);
	err = recolor(s.pid);
	after = servant_in(&s, set);
	guest_check(!err && after == all && !report("busy"), "recolor-waiting",
		    "%d %s: %ld of %ld pages in colour, %lld busy", err, guest_status(), after,
		    all, report("busy"));
	guest_check(dismiss(&s), "recolor-waiting-content", "it changed");
}

/* All of it, after it touched its text again: audited by pagemap alone. */
static void whole(void)
{
	struct servant s = serve(NULL, 1 << 20, SERVE_BUSY);
	struct guest_audit audit;
	char sets[8];
	int err;

	join(s.pid);
	err = recolor(s.pid);
	usleep(100000);
	snprintf(sets, sizeof(sets), "%d", set);
	audit = guest_audit(s.pid, NULL, sets, NULL);
	guest_check(!err && audit.in > (long)(s.bytes / GUEST_PAGE) && audit.out <= report("shared"),
		    "recolor-whole", "%d: %ld of %ld out, first at %lx (%s)",
		    err, audit.out, audit.present, audit.first_out,
		    audit.where);
	guest_check(report("unmapped") > 0, "recolor-text", "none");
	guest_check(dismiss(&s), "recolor-whole-content", "it changed");
}

/* All tasks of the group at once. */
static void everybody(void)
{
	struct servant s[3];
	long in = 0, all = 0;
	int i, err, good = 0;

	for (i = 0; i < 3; i++)
		s[i] = serve(NULL, 4 << 20, SERVE_BUSY);
	for (i = 0; i < 3; i++)
		join(s[i].pid);
	err = recolor(0);
	for (i = 0; i < 3; i++) {
		in += servant_in(&s[i], set);
		all += s[i].bytes / GUEST_PAGE;
	}
	for (i = 0; i < 3; i++)
		good += dismiss(&s[i]);
	guest_check(!err && in >= all - all / 100, "recolor-everybody",
		    "%d: %ld of %ld pages", err, in, all);
	guest_check(good == 3, "recolor-everybody-content", "%d of 3", good);
}

/* ---- threads, forks and ends meanwhile ---- */

static volatile bool stop;

static void *write_and_check(void *arg)
{
	volatile size_t *p = arg;
	size_t i, n = (1 << 20) / sizeof(*p), round, bad = 0;

	for (round = 1; !stop; round++) {
		for (i = 0; i < n; i += 512)
			p[i] = round + i;
		for (i = 0; i < n; i += 512)
			bad += p[i] != round + i;
	}
	return (void *)bad;
}

static void threads_and_forks(void)
{
	pthread_t thread[4];
	void *bad, *sum = NULL;
	pid_t pid = fork();
	int i, status;

	if (pid) {
		usleep(100000);
		join(pid);
		for (i = 0; i < 5; i++)
			recolor(pid);
		kill(pid, SIGTERM);
		waitpid(pid, &status, 0);
		guest_check(!status, "recolor-threads-and-forks",
			    "status %#x", status);
		return;
	}
	signal(SIGTERM, servant_end);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, write_and_check,
			       guest_map_anon(1 << 20));
	while (!servant_told) {
		pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	stop = true;
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &bad);
		sum = (char *)sum + (size_t)bad;
	}
	_exit(!!sum);
}

static void ends(void)
{
	int i, bad = 0, err;

	for (i = 0; i < 20; i++) {
		struct servant s = serve(NULL, 4 << 20, SERVE_BUSY);

		join(s.pid);
		if (i % 2)
			kill(s.pid, SIGKILL);
		err = guest_writef(MINE "recolor", "%d", s.pid);
		kill(s.pid, SIGKILL);
		dismiss(&s);
		bad += err && err != -ESRCH && err != -EINVAL;
	}
	guest_check(!bad, "recolor-ends", "%d times: %s", bad, guest_status());
}

/* What is shared since a fork stays until one of both writes. */
static void forked(void)
{
	struct servant s = { .bytes = 1 << 20 };
	int go[2], status;
	pid_t child;
	char c;

	s.at = guest_map_anon(s.bytes);
	guest_touch(s.at, s.bytes);
	if (pipe(go))
		guest_die("pipe");
	child = fork();
	if (!child) {
		close(go[1]);
		_exit(read(go[0], &c, 1) != 0);
	}
	join(child);
	recolor(child);
	guest_check(report("shared") >= (long)(s.bytes / GUEST_PAGE), "recolor-shared", "%lld",
		    report("shared"));
	close(go[1]);
	waitpid(child, &status, 0);
}

/* Move to the CPUs of node @node, or of any. Return: false: it has none. */
static bool run_on_node(int node)
{
	char path[64], list[64] = "";
	unsigned int cpu;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "r");
	if (!f || !fgets(list, sizeof(list), f) || sscanf(list, "%u", &cpu) != 1)
		return false;
	fclose(f);
	guest_run_on(cpu);
	return true;
}

/* The task's memory policy holds, and not the node of whoever writes to the file. */
static void bound(void)
{
	const struct sol_map *map = guest_map();
	unsigned int there = map->n_bank_sets / map->n_nodes + 3;
	struct servant s;
	long in, far;
	int err;

	if (map->n_nodes < 2 || !run_on_node(1)) {
		guest_skip("recolor-bound", "this guest has no second node");
		return;
	}
	s = serve(NULL, 4 << 20, SERVE_BOUND);
	guest_check(!guest_writef(MINE "bank_set", "3,%u", there), "recolor-two-nodes", "%s",
		    guest_status());
	join(s.pid);
	err = recolor(s.pid);
	in = servant_in(&s, 3);
	far = servant_far(&s);
	guest_check(!err && !far && in >= (long)(s.bytes / GUEST_PAGE) * 99 / 100, "recolor-bound",
		    "%d: of %zu pages %ld are in colour on their node, %ld on another", err,
		    s.bytes / GUEST_PAGE, in, far);
	guest_check(dismiss(&s), "recolor-bound-content", "it changed");

	s = serve(NULL, 1 << 20, SERVE_MBOUND);
	guest_writef(MINE "bank_set", "%u", there);
	join(s.pid);
	err = recolor(s.pid);
	far = servant_far(&s);
	guest_check(!err && !far && report("no_room") >= (long)(s.bytes / GUEST_PAGE),
		    "recolor-mbound", "%d: of %zu pages %ld are on another node, %lld stayed", err,
		    s.bytes / GUEST_PAGE, far, report("no_room"));
	guest_check(dismiss(&s), "recolor-mbound-content", "it changed");
	guest_run_on(0);
	guest_writef(MINE "bank_set", "%d", set);
}

/* A data file stays in the page cache: to undo its mappings brings nothing. */
static void data_file(void)
{
	const size_t bytes = 64 * GUEST_PAGE;
	int fd = open("recolor-data", O_RDWR | O_CREAT | O_TRUNC, 0600), go[2], ready[2], status;
	long there = 0;
	char *p, c;
	pid_t pid;
	size_t i;

	if (fd < 0 || ftruncate(fd, bytes) || pipe(go) || pipe(ready))
		guest_die("recolor-data: %s", strerror(errno));
	p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		guest_die("mmap: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		close(go[1]);
		for (i = 0; i < bytes; i += GUEST_PAGE)
			(void)*(volatile char *)(p + i);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(go[0], &c, 1) != 0);
	}
	if (read(ready[0], &c, 1) != 1)
		guest_die("the reader failed");
	join(pid);
	recolor(pid);
	for (i = 0; i < bytes; i += GUEST_PAGE)
		there += !!guest_pfn(pid, p + i);
	guest_check(there == 64, "recolor-leaves-data", "%ld of 64 pages are mapped", there);
	close(go[1]);
	waitpid(pid, &status, 0);
	munmap(p, bytes);
	close(fd);
	unlink("recolor-data");
}

static void refused(void)
{
	struct servant s = serve(NULL, GUEST_PAGE, 0);
	int err;

	guest_check(guest_write(MINE "recolor", "x") == -EINVAL,
		    "recolor-refuses", "%s", guest_status());
	guest_check(guest_write(MINE "recolor", "2000000000") == -ESRCH,
		    "recolor-no-process", "%s", guest_status());
	err = guest_writef(MINE "recolor", "%d", s.pid);
	guest_check(err == -EINVAL && strstr(guest_status(), "is not of group"),
		    "recolor-not-a-member", "%d %s", err, guest_status());
	guest_group("none", NULL);
	guest_check(guest_write("groups/none/recolor", "0") == -ENODATA,
		    "recolor-no-colours", "%s", guest_status());
	guest_ungroup("none");
	dismiss(&s);
}

int main(void)
{
	guest_run_on(0);	/* memory comes from node 0 */
	guest_group("mine", "3");
	refused();
	running("small", 0);
	running("huge", SERVE_HUGE);
	running("locked", SERVE_LOCKED);
	running("busy", SERVE_BUSY);
	waiting();
	whole();
	everybody();
	threads_and_forks();
	ends();
	forked();
	data_file();
	bound();
	guest_check(!guest_ungroup("mine"), "recolor-group-goes", "%s",
		    guest_status());
	return guest_exit();
}
