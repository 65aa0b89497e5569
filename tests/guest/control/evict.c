/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Evict: what others have in a group's colours goes elsewhere, keeps its content, and
 * lands in no exclusive group's colours. What can't go is counted by cause. A signal
 * ends it. While it waits, it keeps no memory from others.
 */
#include "servant.h"

#include <errno.h>
#include <fcntl.h>

#define SET	3
#define OTHER	5
#define EVICT	"groups/mine/evict"
#define STRANGER	(300ul << 20)
#define KHUGEPAGED	"/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"

/* Listed frames go back, so that the next stranger can get them. */
static struct servant serve_anew(const char *group, size_t bytes, int how)
{
	guest_write("lists", "drain");
	return serve(group, bytes, how);
}

/* Of those of @was that lay in SET, how many lie in OTHER now? */
static long strayed(const struct servant *s, const u64 *was)
{
	size_t n = s->bytes / GUEST_PAGE, i;
	long strays = 0;

	for (i = 0; i < n; i++)
		strays += guest_set_of(was[i]) == SET &&
			  guest_set_of(guest_pfn(s->pid, s->at +
						 i * GUEST_PAGE)) == OTHER;
	return strays;
}

static u64 *frames(const struct servant *s)
{
	size_t n = s->bytes / GUEST_PAGE, i;
	u64 *was = calloc(n, sizeof(*was));

	for (i = 0; was && i < n; i++)
		was[i] = guest_pfn(s->pid, s->at + i * GUEST_PAGE);
	return was;
}

static long long report(const char *key)
{
	return guest_stat(EVICT, key);
}

/* Pages that compaction took away since boot. */
static long long compacted(void)
{
	return kernel_number("/proc/vmstat", "compact_isolated");
}

static long long by_others;	/* pages that compaction took meanwhile */

static int evict(void)
{
	long long before = compacted();
	int err = guest_write(EVICT, "1");
	char text[1024], *at;

	snprintf(text, sizeof(text), "%s", guest_read(EVICT));
	while ((at = strchr(text, '\n')))
		*at = ' ';
	by_others = compacted() - before;
	printf("# %s, compaction isolated %lld\n", text, by_others);
	return err;
}

static long long held(void)
{
	const char *text = guest_read("groups/mine/occupancy");

	return guest_stat_in(text, "anon") + guest_stat_in(text, "mapped") +
	       guest_stat_in(text, "cache");
}

/* A stranger's memory, in small pages or huge ones. */
static void stranger(const char *name, int how)
{
	char what[64];
	struct servant s = serve_anew(NULL, STRANGER, how);
	long before = servant_in(&s, SET), after;
	u64 *was = frames(&s);
	long long kernels = guest_stat("groups/mine/occupancy", "kernel");
	int err = evict();

	after = servant_in(&s, SET);
	snprintf(what, sizeof(what), "evict-%s", name);
	guest_check(!err && before > 1000 && after <= before / 100, what,
		    "%d %s: %ld of %ld pages stayed", err, guest_status(),
		    after, before);
	snprintf(what, sizeof(what), "evict-%s-not-into-exclusive", name);
	/* Compaction moves pages to where it likes. */
	if (by_others)
		guest_skip(what, "the kernel compacted");
	else
		guest_check(!strayed(&s, was), what, "%ld pages",
			    strayed(&s, was));
	free(was);
	snprintf(what, sizeof(what), "evict-%s-reported", name);
	guest_check(report("moved") >= before - after && held() < before / 10,
		    what, "moved %lld, %lld are still held", report("moved"),
		    held());
	snprintf(what, sizeof(what), "evict-%s-kernel", name);
	/* Frames that it took itself on the way are not the kernel's. */
	guest_check(report("kernel") <= kernels + 32, what,
		    "the kernel had %lld frames, %lld in the report", kernels,
		    report("kernel"));
	snprintf(what, sizeof(what), "evict-%s-content", name);
	guest_check(dismiss(&s), what, "it changed");
}

/*
 * Frames that came free are the group's: others get a few, of ZONE_DMA, which no list
 * takes (128 of a set), and of the kernel's per-CPU lists (a batch of 63 on four CPUs,
 * seen: 247 in all). Without the lists it would be a 32nd of 64 MiB: 512.
 */
static void kept_out(void)
{
	struct servant s = serve(NULL, 64ul << 20, 0);
	long n = servant_in(&s, SET);

	guest_check(n <= 128 + 4 * 63, "evict-keeps-out", "%ld pages", n);
	dismiss(&s);
}

/* Somebody writes to the pages all the time. */
static void busy(void)
{
	struct servant s = serve_anew(NULL, 64ul << 20, SERVE_BUSY);
	long before = servant_in(&s, SET);
	int err = evict();
	long after = servant_in(&s, SET);

	guest_check(!err && before > 100 && after <= before / 100, "evict-busy",
		    "%d: %ld of %ld pages stayed", err, after, before);
	guest_check(dismiss(&s), "evict-busy-content", "it changed");
}

static void locked(void)
{
	struct servant s = serve_anew(NULL, 64ul << 20, SERVE_LOCKED);
	long before = servant_in(&s, SET), after;

	guest_set_kernel(LOCKED, "0");
	evict();
	after = servant_in(&s, SET);
	guest_check(before > 100 && after == before &&
		    report("unevictable") >= before, "evict-locked-stays",
		    "%ld of %ld pages, unevictable %lld", after, before,
		    report("unevictable"));
	guest_set_kernel(LOCKED, "1");
	evict();
	after = servant_in(&s, SET);
	guest_check(after <= before / 100, "evict-locked-goes",
		    "%ld of %ld pages stayed", after, before);
	guest_check(dismiss(&s), "evict-locked-content", "it changed");
}

/*
 * A node with less room than its pages in the way need, beside one that is free: no page
 * leaves the node that its task is bound to. What finds no room stays, and is counted.
 */
static void near(void)
{
	struct servant s = serve_anew(NULL, STRANGER, SERVE_BOUND);
	long before = servant_in(&s, SET), after, far;
	struct servant b = serve(NULL, STRANGER * 4, SERVE_BOUND | SERVE_LOCKED |
						     SERVE_LEAVING);
	int err;

	printf("# %ld pages in the way, node 0 has %lld KiB\n", before,
	       kernel_number(NODE0, "Node 0 MemFree"));
	err = evict();
	after = servant_in(&s, SET);
	far = servant_far(&s) + servant_far(&b);
	guest_check(!err && !far, "evict-on-the-node", "%d: %ld pages left it",
		    err, far);
	guest_check(report("no_room") >= after - before / 100,
		    "evict-no-room-said", "%ld of %ld pages stayed, no-room %lld",
		    after, before, report("no_room"));
	guest_check(dismiss(&b) && dismiss(&s), "evict-near-content",
		    "it changed");
}

/* Pages of the group itself stay in their frames. */
static void own(void)
{
	struct servant s = serve("mine", 8ul << 20, 0);
	u64 first = guest_pfn(s.pid, s.at);
	long before = servant_in(&s, SET);

	evict();
	guest_check(before == (long)(s.bytes / GUEST_PAGE) && servant_in(&s, SET) == before &&
		    guest_pfn(s.pid, s.at) == first, "evict-own-stay",
		    "%ld of %ld", servant_in(&s, SET), before);
	guest_check(dismiss(&s), "evict-own-content", "it changed");
}

/* Until this eviction, not the one before, has moved something; 20 s from @start at most. */
static void wait_moving(double start)
{
	while ((strncmp(guest_read(EVICT), "state runs", 10) ||
		report("moved") <= 0) && now_s() - start < 20)
		usleep(10000);
}

static void interrupted(void)
{
	struct servant s = serve_anew(NULL, 64ul << 20, 0);
	double start = now_s(), took;
	char text[32] = "";
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(guest_write(EVICT, "1 rate=100000") == -EINTR ? 3 : 1);
	wait_moving(start);
	snprintf(text, sizeof(text), "%.10s", guest_read(EVICT));
	guest_check(!strncmp(text, "state runs", 10), "evict-seen-at-work",
		    "%s", text);
	guest_check(guest_write(EVICT, "1") == -EBUSY, "evict-one-at-a-time",
		    "%s", guest_status());
	/* Nearly all of a set: pages of 16 KiB leave half as many sets. */
	guest_check(guest_write("groups/other/reserve", GUEST_PAGE == 4096 ? "63M" : "127M") ==
			    -EBUSY &&
		    strstr(guest_status(), "another one runs"),
		    "evict-reserve-says-busy", "%s", guest_status());
	kill(pid, SIGINT);
	kill(pid, SIGTERM);
	start = now_s();
	waitpid(pid, &status, 0);
	took = now_s() - start;
	guest_check(took < 2, "evict-interrupted", "after %.1f s", took);
	snprintf(text, sizeof(text), "%.11s", guest_read(EVICT));
	guest_check(!strncmp(text, "state ended", 11), "evict-ended", "%s",
		    text);
	guest_check(dismiss(&s), "evict-interrupted-content", "it changed");
}

/* Frames of the colours of groups/most that the kernel has: what was put aside is among them. */
static long long kernels(void)
{
	long long least = -1, now;
	int i;

	/* Each step takes some for a moment: an eviction that waits holds them all the time. */
	for (i = 0; i < 5; i++) {
		now = guest_stat("groups/most/occupancy", "kernel");
		least = i && least < now ? least : now;
	}
	return least;
}

/*
 * Of 16 frames that the kernel offers 15 are in colours where no page may go. While a
 * rate has the eviction wait, others can have them. The rate is so low that the slowest
 * host waits for it.
 */
static void lends(void)
{
	struct servant s;
	long long before, moved, held;
	double start;
	pid_t pid;

	guest_group("most", "0-2,6-15");
	if (guest_write("groups/most/mode", "exclusive"))
		guest_die("mode: %s", guest_status());
	s = serve_anew(NULL, STRANGER, 0);
	before = kernels();
	start = now_s();
	pid = fork();
	if (!pid)
		_exit(guest_writef(EVICT, "1 rate=%lu", 64 * GUEST_PAGE) != -EINTR);
	do {
		wait_moving(start);
		moved = report("moved");
	} while (moved < 128 && now_s() - start < 20);
	held = kernels() - before;
	kill(pid, SIGINT);
	waitpid(pid, NULL, 0);
	printf("# %lld frames held, %lld pages moved\n", held, moved);
	guest_check(moved >= 128 && held < 2 * moved, "evict-lends",
		    "%lld frames held in the way of %lld pages", held, moved);
	guest_check(dismiss(&s), "evict-lends-content", "it changed");
	guest_ungroup("most");
}

/* A group has all colours of a node: there is no frame on it where a page may go. */
static void whole_node(void)
{
	struct servant s;
	long long listed, stay;

	guest_group("whole", NULL);
	if (guest_write("groups/whole/node", "1"))
		guest_die("node: %s", guest_status());
	guest_run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	s = serve_anew(NULL, 64ul << 20, 0);
	guest_run_on(0);
	guest_check(!guest_write("groups/whole/evict", "1"), "evict-whole-node", "%s",
		    guest_status());
	listed = guest_stat("groups/whole/evict", "listed");
	stay = guest_stat("groups/whole/evict", "no_room");
	printf("# %lld frames listed, %lld pages stay\n", listed, stay);
	guest_check(stay >= (long long)(s.bytes / GUEST_PAGE) &&
			    listed <= (1ll << 30) / (long long)GUEST_PAGE,
		    "evict-whole-node-no-room", "%lld frames listed, %lld pages stay", listed,
		    stay);
	guest_check(dismiss(&s), "evict-whole-node-content", "it changed");
	guest_ungroup("whole");
	guest_write("lists", "drain");
}

static void refused(void)
{
	static const char *const wrong[] = {
		"\n", "2", "1 rate=0", "1 rate=-1", "1 rate=x", "1 fast",
		"11", "1 rate=99999999999999999999999",
	};
	unsigned int i, n = 0;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		n += guest_write(EVICT, wrong[i]) == -EINVAL;
	guest_check(n == i, "evict-refuses", "%u of %u", n, i);
	guest_group("none", NULL);
	guest_check(guest_write("groups/none/evict", "1") == -ENODATA,
		    "evict-no-colours", "%s", guest_status());
	guest_check(!strncmp(guest_read("groups/none/evict"), "state none", 10),
		    "evict-none-yet", "%s", guest_read("groups/none/evict"));
	guest_ungroup("none");
}

/* In a child, which gets some seconds for it. */
static bool soon(bool (*done)(void))
{
	double start = now_s();
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		_exit(!done());
	while (now_s() - start < 5) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return !status;
		usleep(10000);
	}
	return false;
}

static bool others_come_and_go(void)
{
	guest_group("comes", NULL);
	return !guest_ungroup("comes") && !guest_ungroup("goes");
}

static bool fleeting_ends(void)
{
	while (strcmp(guest_read("groups/fleeting/ephemeral"), "gone\n"))
		usleep(10000);
	return !guest_ungroup("fleeting");
}

static bool mine_goes(void)
{
	return !guest_ungroup("mine");
}

/* While it runs, groups come and go, its own, too, which ends it. */
static void holds_up_nobody(void)
{
	struct servant s = serve_anew(NULL, STRANGER, 0), fleeting;
	double start = now_s();
	int status = 0;
	pid_t pid;

	printf("# %ld pages in the way\n", servant_in(&s, SET));
	guest_group("goes", NULL);
	guest_group("fleeting", "6");
	fleeting = serve("fleeting", GUEST_PAGE, 0);
	guest_write("groups/fleeting/ephemeral", "1");
	pid = fork();
	if (!pid)
		_exit(guest_write(EVICT, "1 rate=100000") == -ENOENT &&
		      strstr(guest_status(), "mine was removed") ? 3 : 1);
	wait_moving(start);
	guest_check(soon(others_come_and_go), "evict-groups-come-and-go",
		    "a group was not made or removed while it ran");
	kill(fleeting.pid, SIGKILL);
	waitpid(fleeting.pid, NULL, 0);
	guest_check(soon(fleeting_ends), "evict-groups-end",
		    "an ephemeral group did not end while it ran");
	guest_check(!strncmp(guest_read(EVICT), "state runs", 10),
		    "evict-goes-on", "%.12s", guest_read(EVICT));
	guest_check(soon(mine_goes), "evict-removed-meanwhile",
		    "its group was not removed while it ran");
	start = now_s();
	while (!waitpid(pid, &status, WNOHANG) && now_s() - start < 5)
		usleep(10000);
	kill(pid, SIGKILL);
	guest_check(WIFEXITED(status) && WEXITSTATUS(status) == 3,
		    "evict-ends-with-its-group", "status %#x", status);
	dismiss(&s);
}

int main(void)
{
	char set[16];

	guest_run_on(0);	/* memory comes from node 0 */
	snprintf(set, sizeof(set), "%d", OTHER);
	guest_group("other", set);
	if (guest_write("groups/other/mode", "exclusive"))
		guest_die("mode: %s", guest_status());
	snprintf(set, sizeof(set), "%d", SET);
	guest_group("mine", set);
	if (guest_write("groups/mine/mode", "exclusive"))
		guest_die("mode: %s", guest_status());
	guest_set_kernel(LOCKED, "1");
	/* Else the kernel moves pages all the time, to where it likes. */
	guest_set_kernel("/proc/sys/vm/compaction_proactiveness", "0");
	/* Nor shall it ask for more free memory once node 0 is full, and kill who has it. */
	guest_set_kernel("/proc/sys/vm/watermark_boost_factor", "0");
	/* Nor shall it make huge pages anew of those that eviction split. */
	if (!access(KHUGEPAGED, W_OK))
		guest_set_kernel(KHUGEPAGED, "600000");
	refused();
	stranger("small", 0);
	kept_out();
	stranger("huge", SERVE_HUGE);
	busy();
	locked();
	near();
	own();
	whole_node();
	interrupted();
	lends();
	holds_up_nobody();
	guest_set_kernel("/proc/sys/vm/watermark_boost_factor", "15000");
	guest_ungroup("other");
	guest_write("lists", "drain");
	if (!access(KHUGEPAGED, W_OK))
		guest_set_kernel(KHUGEPAGED, "10000");
	return guest_exit();
}
