/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Recolouring under load: groups whose colours change or are exchanged, tasks of FIFO
 * priority, programs that execute others, swap, colours that are too small; at a rate;
 * beside isolated CPUs; and by number, for groups that have no directory.
 */
#include "servant.h"
#include "../moves/zram.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define MIB	(1ul << 20)

/* Recolour all of @group, or with more words; tell the report in a line. */
static int recolor(const char *group, const char *words)
{
	char path[64], text[2048], *at;
	int err;

	snprintf(path, sizeof(path), "groups/%s/recolor", group);
	err = guest_write(path, words);
	snprintf(text, sizeof(text), "%s", guest_read(path));
	while ((at = strchr(text, '\n')))
		*at = ' ';
	at = strstr(text, "stood_lt");
	if (at)
		*at = 0;
	printf("# %s < %s: %d %s\n", group, words, err, text);
	return err;
}

static long long report(const char *group, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "groups/%s/recolor", group);
	return guest_stat(path, key);
}

static void colors(const char *group, const char *sets)
{
	char path[64];

	snprintf(path, sizeof(path), "groups/%s/bank_set", group);
	if (guest_write(path, sets))
		guest_die("%s < %s: %s", path, sets, guest_status());
}

/* Pages of a histogram in the report. */
static long long stood(const char *group)
{
	char path[64];
	const char *at;
	long long sum = 0;

	snprintf(path, sizeof(path), "groups/%s/recolor", group);
	for (at = guest_read(path); (at = strstr(at, "\nstood_")); at++)
		sum += atoll(strchr(at, ' '));
	return sum;
}

/* A group whose colours change: pages that it was handed out before move, too. */
static void changed(void)
{
	struct servant s = serve("one", 8 * MIB, SERVE_BUSY);
	long all = s.bytes / GUEST_PAGE;
	int err;

	colors("one", "4");
	guest_check(servant_in(&s, 3) == all, "changed-stay", "%ld of %ld",
		    servant_in(&s, 3), all);
	err = recolor("one", "0");
	guest_check(!err && servant_in(&s, 4) >= all - all / 100,
		    "changed-moved", "%d: %ld of %ld in the new colour", err,
		    servant_in(&s, 4), all);
	guest_check(stood("one") == report("one", "moved") && stood("one") > 0,
		    "changed-histogram", "%lld pages of %lld", stood("one"),
		    report("one", "moved"));
	guest_check(dismiss(&s), "changed-content", "it changed");
	colors("one", "3");
}

/* Two groups exchange their colours; one has a task of FIFO priority. */
static void exchanged(void)
{
	struct servant a = serve("one", 16 * MIB, SERVE_BUSY);
	struct servant b = serve("two", 16 * MIB, SERVE_BUSY | SERVE_FIFO);
	long all = a.bytes / GUEST_PAGE, in_a, in_b;
	int i, err = 0, good;

	for (i = 0; i < 3; i++) {
		colors("one", i % 2 ? "3" : "5");
		colors("two", i % 2 ? "5" : "3");
		err |= recolor("one", "0") | recolor("two", "0");
	}
	in_a = servant_in(&a, 5);
	in_b = servant_in(&b, 3);
	guest_check(!err && in_a >= all - all / 50 && in_b >= all - all / 50,
		    "exchanged", "%d: %ld and %ld of %ld", err, in_a, in_b, all);
	good = dismiss(&a) + dismiss(&b);
	guest_check(good == 2, "exchanged-content", "%d of 2", good);
	colors("one", "3");
	colors("two", "5");
}

/* A program that executes others all the time. */
static void executing(void)
{
	volatile int *executed = mmap(NULL, GUEST_PAGE, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = executed == MAP_FAILED ? -1 : fork();
	int i, err = 0, status = 0, ended = 0;

	if (!pid) {
		signal(SIGTERM, servant_end);
		if (guest_join("one"))
			_exit(1);
		for (; !servant_told; ++*executed) {
			pid_t child = fork();

			if (!child) {
				execl("/proc/self/exe", "exchange", "exit", NULL);
				_exit(9);
			}
			if (waitpid(child, &status, 0) != child || status)
				_exit(2);
		}
		_exit(0);
	}
	/* Until it has executed some meanwhile; it ends by itself only if one fails. */
	for (i = 0; (i < 6 || *executed < 6) && !ended; i++) {
		colors("one", i % 2 ? "3" : "5");
		err |= recolor("one", "0");
		ended = waitpid(pid, &status, WNOHANG);
	}
	if (!ended) {
		kill(pid, SIGTERM);
		waitpid(pid, &status, 0);
	}
	guest_check(!err && !ended && !status, "executing",
		    "%d, status %#x", err, status);
	colors("one", "3");
}

/* What is swapped comes back in the new colour. */
static void swapped(void)
{
	struct servant s;
	long all, in;
	int err, i;

	if (!swap_on_zram("128M", 128 * MIB)) {
		guest_skip("swapped", "no zram in this guest");
		return;
	}
	s = serve(NULL, 8 * MIB, SERVE_SWAPPED);
	all = s.bytes / GUEST_PAGE;
	if (guest_writef("groups/one/procs", "%d", s.pid))
		guest_die("procs: %s", guest_status());
	err = recolor("one", "0");
	servant_poke(&s);
	for (i = 0; i < 50 && servant_in(&s, 3) < all; i++)
		usleep(100000);
	in = servant_in(&s, 3);
	guest_check(!err && in >= all - all / 50, "swapped-back-in-color",
		    "%d: %ld of %ld", err, in, all);
	guest_check(dismiss(&s), "swapped-content", "it changed");
	swapoff("/dev/zram0");
}

/* The colours are too small: what found no room stays where it was, and is counted. */
static void no_room(void)
{
	size_t bytes = guest_stat("groups/one/stats", "capacity") + 8 * MIB;
	struct servant s = serve(NULL, bytes, 0);
	long all = bytes / GUEST_PAGE, in;
	int err;

	/* Else the process gets a signal at its next fault. */
	guest_write("groups/one/exhaust", "spill");
	if (guest_writef("groups/one/procs", "%d", s.pid))
		guest_die("procs: %s", guest_status());
	err = recolor("one", "0");
	in = servant_in(&s, 3);
	guest_check(!err && report("one", "no_room") >= 8 * (long)MIB / (long)GUEST_PAGE / 2 &&
		    in > all / 4, "no-room-counted",
		    "%d: no_room %lld, %ld of %ld in", err,
		    report("one", "no_room"), in, all);
	guest_check(dismiss(&s), "no-room-content", "it changed");
	guest_write("groups/one/exhaust", "fail");
}

static void at_a_rate(void)
{
	struct servant s = serve("one", 8 * MIB, 0);
	double start, took;
	int err;

	colors("one", "4");
	start = now_s();
	err = recolor("one", "0 rate=4194304");
	took = now_s() - start;
	guest_check(!err && report("one", "moved") >= 2000 && took > 1.5 &&
		    took < 20, "rate", "%d: %lld pages in %.1f s", err,
		    report("one", "moved"), took);
	guest_check(guest_write("groups/one/recolor", "0 rate=0") == -EINVAL &&
		    guest_write("groups/one/recolor", "0 fast") == -EINVAL,
		    "rate-refused", "%s", guest_status());
	dismiss(&s);
	colors("one", "3");
}

/* ---- isolated CPUs ---- */

#define CGROUP	"/tmp/exchange-cgroup"

/* Processors of arm64 tell each other's TLBs: nobody is interrupted, and no page stays. */
#ifdef __aarch64__
#define STAYS	false
#else
#define STAYS	true
#endif

/* CPU 1 is a partition of its own, without load balancing. */
static bool isolate(void)
{
	mkdir(CGROUP, 0755);
	if (mount("none", CGROUP, "cgroup2", 0, NULL) && errno != EBUSY)
		return false;
	set_kernel(CGROUP "/cgroup.subtree_control", "+cpuset");
	mkdir(CGROUP "/alone", 0755);
	set_kernel(CGROUP "/alone/cpuset.cpus", "1");
	return !set_kernel(CGROUP "/alone/cpuset.cpus.partition", "isolated");
}

static void unisolate(void)
{
	set_kernel(CGROUP "/alone/cpuset.cpus.partition", "member");
	rmdir(CGROUP "/alone");
	umount(CGROUP);
}

static bool is_isolated(void)
{
	char text[64] = "";
	int fd = open(CGROUP "/cpuset.cpus.isolated", O_RDONLY);

	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 1)
		text[0] = 0;
	close(fd);
	return text[0] == '1';
}

/* Words of /proc/PID/stat after the name. */
#define USER_TICKS	11
#define LAST_CPU	36

/* A number of /proc/PID/stat, @skip words after the name; -1: not known. */
static long long stat_number(pid_t pid, int skip)
{
	char path[64], text[1024] = "";
	const char *at;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		guest_die("%s: %s", path, strerror(errno));
	close(fd);
	at = strrchr(text, ')');
	for (at = at ? at + 1 : text; at && skip > 0; skip--)
		at = strchr(at + 1, ' ');
	return at ? strtoll(at, NULL, 10) : -1;
}

/* Until the servant has run on CPU 1, which a busy host may put off. */
static void wait_alone(const struct servant *s)
{
	long long ran;

	while (stat_number(s->pid, LAST_CPU) != 1)
		usleep(10000);
	ran = stat_number(s->pid, USER_TICKS);
	while (stat_number(s->pid, USER_TICKS) == ran)
		usleep(10000);
}

#define PROACTIVE	"/proc/sys/vm/compaction_proactiveness"

/*
 * A group asks for all of its colour, where a stranger on the isolated CPU has pages. The
 * kernel's own compaction moves a stranger's pages, too, and a slow kernel has time for it.
 */
static void supply_spares(void)
{
	long before, after, flushes, compacted;
	char pid[16], proactive[16];
	struct servant s;
	int err;

	snprintf(proactive, sizeof(proactive), "%lld", kernel_number(PROACTIVE, NULL));
	set_kernel(PROACTIVE, "0");

	guest_write("lists", "drain");
	s = serve(NULL, 128 * MIB, SERVE_BUSY);
	snprintf(pid, sizeof(pid), "%d", s.pid);
	if (set_kernel(CGROUP "/alone/cgroup.procs", pid))
		guest_die("cgroup.procs: %s", strerror(errno));
	wait_alone(&s);
	before = servant_in(&s, 5);
	flushes = guest_flushes(1);
	compacted = kernel_number("/proc/vmstat", "compact_isolated");
	err = guest_write("groups/two/reserve", "62M");
	flushes = guest_flushes(1) - flushes;
	after = servant_in(&s, 5);
	compacted = kernel_number("/proc/vmstat", "compact_isolated") - compacted;
	guest_check(before > 200 && (STAYS ? before - after <= compacted : after < before),
		    "isolated-supply-spares",
		    "%d %s: %ld of %ld pages stayed, CPU 1 flushed its TLB %ld times, compaction took %ld pages",
		    err, guest_status(), after, before, flushes, compacted);
	err = guest_write("groups/two/evict", "1 isolated");
	after = servant_in(&s, 5);
	guest_check(!err && after < before / 10, "isolated-evict-when-asked",
		    "%d: %ld of %ld stayed", err, after, before);
	guest_write("groups/two/reserve", "0");
	guest_check(dismiss(&s), "isolated-strangers-content", "it changed");
	guest_write("lists", "drain");
	set_kernel(PROACTIVE, proactive);
}

#define TRACING	"/sys/kernel/tracing"
#define WORKS	TRACING "/events/workqueue/workqueue_execute_start/enable"
#define LET_GO	"function let_go_fn"
#define DRAIN	"function lru_add_drain_per_cpu"

/* How often CPUs did @work; @cpu: that one. */
static u32 asked(const char *work, const char *cpu)
{
	FILE *f = fopen(TRACING "/trace", "r");
	char line[512];
	u32 n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, work) && (!cpu || strstr(line, cpu));
	if (f)
		fclose(f);
	return n;
}

/* Opening alone empties the trace. */
static void forget_works(void)
{
	int fd = open(TRACING "/trace", O_WRONLY | O_TRUNC);

	if (fd < 0 || close(fd))
		guest_die("trace: %s", strerror(errno));
}

/* Besides the root of its page tables it leaves a page in @kept, a pipe. */
static void leave_last(int kept)
{
	struct iovec page = { guest_map_anon(GUEST_PAGE), GUEST_PAGE };

	guest_run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (guest_join("gone"))
		guest_die("join: %s", guest_status());
	guest_touch(page.iov_base, GUEST_PAGE);
	if (vmsplice(kept, &page, 1, 0) != (ssize_t)GUEST_PAGE)
		guest_die("vmsplice: %s", strerror(errno));
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/*
 * A removed group waits for an idle CPU, which keeps the root of its page tables. The isolated
 * one keeps a stranger's, who sleeps or has @ended.
 */
static void root_is_spared(const char *name, bool ended)
{
	struct servant s = serve(NULL, MIB, 0);
	int tries, kept[2];
	char pid[16];
	pid_t child;

	if (pipe(kept))
		guest_die("pipe: %s", strerror(errno));
	snprintf(pid, sizeof(pid), "%d", s.pid);
	if (set_kernel(CGROUP "/alone/cgroup.procs", pid))
		guest_die("cgroup.procs: %s", strerror(errno));
	while (stat_number(s.pid, LAST_CPU) != 1) {
		servant_poke(&s);
		usleep(10000);
	}
	if (ended && !dismiss(&s))
		guest_die("%s: the stranger's memory changed", name);
	forget_works();
	guest_group("gone", "6");
	child = fork();
	if (!child)
		leave_last(kept[1]);
	waitpid(child, NULL, 0);
	guest_ungroup("gone");
	for (tries = 0; tries < 40 && !asked(LET_GO, NULL); tries++)
		usleep(100000);
	usleep(300000);
	close(kept[0]);
	close(kept[1]);
	if (!asked(LET_GO, NULL))
		guest_skip(name, "page tables begin in no colour here");
	else
		guest_check(!asked(LET_GO, "[001]"), name, "CPU 1 was asked");
	if (!ended && !dismiss(&s))
		guest_die("%s: the sleeper's memory changed", name);
}

/* A process on the isolated CPU whose last pages wait in a batch there. */
static pid_t wait_in_batch(void)
{
	int told[2];
	pid_t pid;
	char c;

	if (pipe(told))
		guest_die("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		set_kernel(CGROUP "/alone/cgroup.procs", "0");
		guest_touch(guest_map_anon(5 * GUEST_PAGE), 5 * GUEST_PAGE);
		write(told[1], "", 1);
		pause();
		_exit(0);
	}
	read(told[0], &c, 1);
	close(told[0]);
	close(told[1]);
	return pid;
}

#define COLLAPSE	"/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"

/*
 * Pages wait in batches of two CPUs: they move from the one, and the isolated one has peace.
 * khugepaged and removed groups ask all CPUs for pages, too.
 */
static void batches_are_spared(void)
{
	struct servant s;
	int tries, err;
	pid_t alone;
	long all;

	set_kernel(COLLAPSE, "3600000");
	for (tries = 0; tries < 100 && guest_stat("stats", "removed"); tries++)
		usleep(100000);
	guest_run_on(2);
	s = serve(NULL, 16 * GUEST_PAGE, 0);
	guest_run_on(0);
	all = s.bytes / GUEST_PAGE;
	if (guest_writef("groups/one/procs", "%d", s.pid))
		guest_die("procs: %s", guest_status());
	alone = wait_in_batch();
	forget_works();
	err = recolor("one", "0");
	guest_check(!err && servant_in(&s, 4) == all, "isolated-others-batches",
		    "%d: %ld of %ld moved", err, servant_in(&s, 4), all);
	guest_check(!asked(DRAIN, "[001]") && !asked(LET_GO, "[001]"), "isolated-batches",
		    "CPU 1 was asked for pages");
	set_kernel(COLLAPSE, "10000");
	kill(alone, SIGKILL);
	waitpid(alone, NULL, 0);
	guest_check(dismiss(&s), "isolated-batches-content", "it changed");
}

#define RULE	GUEST_ROOT "/rules/greedy"

/* An exec of any user's that finds too few colours looks for pages of ended tasks. */
static void exec_is_spared(void)
{
	pid_t alone, child;

	set_kernel(COLLAPSE, "3600000");
	mkdir(RULE, 0755);
	if (guest_write("rules/greedy/path", "/bin/true") ||
	    guest_writef("rules/greedy/colors", "%u", guest_map()->n_bank_sets) ||
	    guest_write("rules/greedy/uid", "any") ||
	    guest_write("rules/greedy/enabled", "1"))
		guest_die("rule: %s", guest_status());
	alone = wait_in_batch();
	forget_works();
	child = fork();
	if (!child) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	guest_check(guest_stat("rules/greedy/stats", "refused") > 0,
		    "isolated-exec-refused", "%s", guest_read("rules/greedy/stats"));
	guest_check(asked(LET_GO, NULL) || asked(DRAIN, NULL), "isolated-exec-looks",
		    "no CPU was asked for pages");
	guest_check(!asked(DRAIN, "[001]") && !asked(LET_GO, "[001]"), "isolated-exec",
		    "CPU 1 was asked for pages");
	rmdir(RULE);
	set_kernel(COLLAPSE, "10000");
	kill(alone, SIGKILL);
	waitpid(alone, NULL, 0);
}

/* Where a task of group "gone" gets its last pages, and where it ends. */
enum way { PASSES_BY, WAS_THERE, ENDS_THERE };

static void leave_pages(enum way way)
{
	if (guest_join("gone"))
		guest_die("join: %s", guest_status());
	if (way == PASSES_BY)
		guest_run_on(3);
	else
		set_kernel(CGROUP "/alone/cgroup.procs", "0");
	guest_touch(guest_map_anon(3 * GUEST_PAGE), 3 * GUEST_PAGE);
	if (way == ENDS_THERE)
		_exit(0);
	set_kernel(CGROUP "/cgroup.procs", "0");
	guest_run_on(2);
	_exit(0);
}

/* Group "gone" is removed when its task has ended. Return: it has left nothing behind. */
static bool goes(enum way way)
{
	pid_t child;
	int tries;

	for (tries = 0; tries < 100 && guest_stat("stats", "removed"); tries++)
		usleep(100000);
	forget_works();
	guest_group("gone", "6");
	child = fork();
	if (!child)
		leave_pages(way);
	waitpid(child, NULL, 0);
	guest_ungroup("gone");
	for (tries = 0; tries < 100 && guest_stat("stats", "removed"); tries++)
		usleep(100000);
	return !guest_stat("stats", "removed");
}

/* The isolated CPU is asked for pages of a group only if the group had some there. */
static void ending_is_spared(void)
{
	pid_t alone;

	set_kernel(COLLAPSE, "3600000");
	alone = wait_in_batch();
	guest_check(goes(PASSES_BY), "isolated-ending-goes", "its pages stay in CPU 3's batch");
	guest_check(!asked(DRAIN, "[001]") && !asked(LET_GO, "[001]"), "isolated-ending",
		    "CPU 1 was asked for a stranger's pages");
	kill(alone, SIGKILL);
	waitpid(alone, NULL, 0);
	guest_check(goes(WAS_THERE), "isolated-was-there", "its pages stay in CPU 1's batch");
	guest_check(goes(ENDS_THERE), "isolated-ends-there", "CPU 1 keeps the root of its tables");
	set_kernel(COLLAPSE, "10000");
}

/* What runs on the isolated CPU is traced. */
static void nothing_is_asked(void)
{
	mount("tracefs", TRACING, "tracefs", 0, NULL);
	if (set_kernel(WORKS, "1"))
		guest_die("no tracepoint of workqueues");
	batches_are_spared();
	exec_is_spared();
	ending_is_spared();
	root_is_spared("isolated-sleeper", false);
	root_is_spared("isolated-ended", true);
	set_kernel(WORKS, "0");
}

static void isolated(void)
{
	struct servant s;
	long all, stay;
	char pid[16];
	int err;

	if (!isolate() || !is_isolated()) {
		unisolate();
		guest_skip("isolated", "no isolated partition of cpusets");
		return;
	}
	s = serve("one", 2 * MIB, SERVE_BUSY);
	all = s.bytes / GUEST_PAGE;
	stay = STAYS ? all : 0;
	snprintf(pid, sizeof(pid), "%d", s.pid);
	if (set_kernel(CGROUP "/alone/cgroup.procs", pid))
		guest_die("cgroup.procs: %s", strerror(errno));
	wait_alone(&s);
	colors("one", "4");
	err = recolor("one", "0");
	guest_check(!err && servant_in(&s, 3) == stay &&
		    (STAYS ? report("one", "isolated") >= all :
		     !report("one", "isolated")), "isolated-stays",
		    "%d: %ld of %ld stayed, isolated %lld", err,
		    servant_in(&s, 3), all, report("one", "isolated"));
	err = recolor("one", "0 isolated");
	guest_check(!err && servant_in(&s, 4) >= all - all / 50 &&
		    !report("one", "isolated"), "isolated-when-asked",
		    "%d: %ld of %ld moved", err, servant_in(&s, 4), all);
	guest_check(dismiss(&s), "isolated-content", "it changed");
	supply_spares();
	nothing_is_asked();
	unisolate();
	colors("one", "3");
}

/* ---- by number ---- */

static void by_number(void)
{
	struct servant s = serve("one", 2 * MIB, 0);
	long long id = atoll(guest_read("groups/one/id"));
	long all = s.bytes / GUEST_PAGE;
	int err;

	colors("one", "4");
	err = guest_writef("recolor", "%lld pid=%d", id, s.pid);
	guest_check(!err && servant_in(&s, 4) >= all - all / 50 &&
		    guest_stat("recolor", "group") == id, "by-number-recolor",
		    "%d %s: %ld of %ld", err, guest_status(),
		    servant_in(&s, 4), all);
	colors("one", "3");
	err = guest_writef("evict", "%lld rate=1000000000", id);
	guest_check(!err && guest_stat("evict", "group") == id &&
		    guest_stat("evict", "seen") > 1000, "by-number-evict",
		    "%d %s", err, guest_status());
	guest_check(guest_write("evict", "65000") == -ENOENT &&
		    guest_write("recolor", "x") == -EINVAL &&
		    guest_write("evict", "1 pid=1") == -EINVAL &&
		    guest_write("recolor", "1 pid=0") == -EINVAL,
		    "by-number-refuses", "%s", guest_status());
	dismiss(&s);
}

/* Has the root's slow eviction of group @id moved something? */
static bool evicts(long long id)
{
	return guest_stat("evict", "group") == id && strstr(guest_read("evict"), "state runs") &&
	       guest_stat("evict", "moved") > 0;
}

/* Who asks for a job by number is no task of the group, and does not keep it. */
static void by_number_is_no_task(void)
{
	struct servant stranger, s;
	long long id, tasks;
	int status, tries;
	pid_t pid;

	/* Frames that are listed are nobody's: then the stranger would have none to be moved. */
	guest_write("lists", "drain");
	stranger = serve(NULL, 32 * MIB, 0);
	guest_group("passing", "6");
	s = serve("passing", MIB, 0);
	id = atoll(guest_read("groups/passing/id"));
	guest_write("groups/passing/ephemeral", "1");
	pid = fork();
	if (!pid)
		_exit(-guest_writef("evict", "%lld rate=4096", id));
	for (tries = 0; tries < 1000 && !evicts(id); tries++)
		usleep(10000);
	tasks = guest_stat("groups/passing/stats", "tasks");
	guest_check(evicts(id) && tasks == 1, "by-number-no-task", "%lld tasks, of one", tasks);
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, 0);
	for (tries = 0; tries < 1000 && *guest_read("groups/passing/ephemeral") != 'g'; tries++)
		usleep(10000);
	guest_check(tries < 1000, "by-number-keeps-nobody", "the group did not go");
	if (tries == 1000)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	guest_check(status == ENOENT << 8, "by-number-ends", "status %#x; %s", status,
		    guest_read("evict"));
	guest_ungroup("passing");
	dismiss(&stranger);
}

/* A rule made the group: it has no directory. */
static void ruled(void)
{
	struct servant s = { .bytes = MIB };
	long long id = 0;
	const char *at;
	int set, err;

	mkdir(GUEST_ROOT "/rules/here", 0755);
	if (guest_write("rules/here/path", "*/exchange*") ||
	    guest_write("rules/here/uid", "any") ||
	    guest_write("rules/here/enabled", "1"))
		guest_die("rule: %s", guest_status());
	if (pipe(s.ready))
		guest_die("pipe");
	s.pid = fork();
	if (!s.pid) {
		dup2(s.ready[1], 3);
		execl("/proc/self/exe", "exchange", "sit", NULL);
		_exit(9);
	}
	if (read(s.ready[0], &s.at, sizeof(s.at)) != sizeof(s.at))
		guest_die("the program failed");
	at = strstr(guest_read("implicit"), "group ");
	id = at ? atoll(at + 6) : 0;
	set = guest_set_of(guest_pfn(s.pid, s.at));
	guest_check(id > 0 && servant_in(&s, set) == 256, "ruled",
		    "group %lld, %ld pages", id, servant_in(&s, set));
	err = guest_writef("recolor", "%lld", id);
	guest_check(!err && guest_stat("recolor", "in_place") >= 256,
		    "ruled-recolor", "%d %s", err, guest_status());
	err = guest_writef("evict", "%lld", id);
	guest_check(!err && guest_stat("evict", "in_place") >= 256,
		    "ruled-evict", "%d %s", err, guest_status());
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, 0);
	rmdir(GUEST_ROOT "/rules/here");
}

static int sit(void)
{
	char *p = guest_map_anon(MIB);

	guest_touch(p, MIB);
	if (write(3, &p, sizeof(p)) != sizeof(p))
		return 1;
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	if (argc > 1 && !strcmp(argv[1], "sit"))
		return sit();
	guest_run_on(0);	/* memory comes from node 0 */
	guest_group("one", "3");
	guest_group("two", "5");
	changed();
	exchanged();
	executing();
	swapped();
	no_room();
	at_a_rate();
	isolated();
	by_number();
	by_number_is_no_task();
	ruled();
	guest_ungroup("one");
	guest_ungroup("two");
	guest_write("lists", "drain");
	return guest_exit();
}
