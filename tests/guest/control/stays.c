/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Eviction of what a disk's page cache and devices have in a group's colours: clean cache
 * is dropped, mapped and dirty cache migrates, pinned pages stay and are counted until
 * they are pinned no more. `reserve` of an exclusive group evicts.
 */
#include "servant.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#define SET	3
#define MIB	(1ul << 20)
#define EVICT	"groups/mine/evict"
#define DEVICE	"/dev/nullb0"

static long long report(const char *key)
{
	return guest_stat(EVICT, key);
}

static long long held(const char *holder)
{
	return guest_stat("groups/mine/occupancy", holder);
}

static int evict(void)
{
	int err = guest_write(EVICT, "1");

	printf("# moved %lld, dropped %lld, pinned %lld, busy %lld, huge %lld, no_room %lld, kernel %lld\n",
	       report("moved"), report("dropped"), report("pinned"),
	       report("busy"), report("huge"), report("no_room"), report("kernel"));
	return err;
}

/* Pages of a range of ours that lie in SET. */
static long in_set(const char *p, size_t bytes)
{
	long n = 0;
	size_t i;

	for (i = 0; i < bytes; i += GUEST_PAGE)
		n += guest_set_of(guest_pfn(0, p + i)) == SET;
	return n;
}

/* ---- page cache of a disk ---- */

static void clean_cache(int disk)
{
	static char buf[MIB];
	long long before;
	int i;

	guest_write("lists", "drain");
	for (i = 0; i < 200; i++)
		if (pread(disk, buf, MIB, i * MIB) != (ssize_t)MIB)
			guest_die("%s: %s", DEVICE, strerror(errno));
	before = held("cache");
	evict();
	guest_check(before > 1000 && report("dropped") >= before * 9 / 10 &&
		    held("cache") < before / 50, "cache-dropped",
		    "%lld of %lld dropped, %lld stayed", report("dropped"),
		    before, held("cache"));
}

static void mapped_cache(int disk)
{
	const size_t bytes = 100 * MIB;
	volatile const char *p;
	long before, after;
	size_t i;
	int sum = 0;

	guest_write("lists", "drain");
	p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, disk, 300 * MIB);
	if (p == MAP_FAILED)
		guest_die("mmap: %s", strerror(errno));
	for (i = 0; i < bytes; i += GUEST_PAGE)
		sum |= p[i];
	before = in_set((char *)p, bytes);
	evict();
	after = in_set((char *)p, bytes);
	guest_check(before > 300 && after <= before / 50 && !sum,
		    "cache-mapped-moved", "%ld of %ld stayed, moved %lld", after,
		    before, report("moved"));
	munmap((void *)p, bytes);
}

/* Written and not yet on the disk. */
static void dirty_cache(int disk)
{
	static char buf[MIB];
	char back[64];
	long long before;
	int i;

	guest_write("lists", "drain");
	memset(buf, 0x5a, sizeof(buf));
	for (i = 0; i < 64; i++)
		if (pwrite(disk, buf, MIB, (500 + i) * MIB) != (ssize_t)MIB)
			guest_die("write: %s", strerror(errno));
	before = held("cache");
	evict();
	guest_check(before > 200 && held("cache") <= before / 20,
		    "cache-dirty-goes", "%lld of %lld stayed", held("cache"),
		    before);
	guest_check(pread(disk, back, sizeof(back), 510 * MIB) ==
		    sizeof(back), "cache-dirty-read", "%s", strerror(errno));
}

/* ---- a file system that goes ---- */

#define MOUNT	"/tmp/stays-mount"
#define MIXED	(32 * MIB)
#define PIECE	(16 * GUEST_PAGE)
#define WRITEBACK	"/proc/sys/vm/dirty_writeback_centisecs"

/* A file that is not yet on the disk, and a task's pages in between. */
static char *write_mixed(void)
{
	int fd = open(MOUNT "/file", O_CREAT | O_WRONLY, 0600);
	char *p = guest_map_anon(MIXED);
	size_t at;

	madvise(p, MIXED, MADV_NOHUGEPAGE);
	for (at = 0; at < MIXED; at += PIECE) {
		guest_touch(p + at, PIECE);
		if (write(fd, p + at, PIECE) != (ssize_t)PIECE)
			guest_die("%s: %s", MOUNT, strerror(errno));
	}
	close(fd);
	return p;
}

/* Has the page cache of ext4 huge pages? */
static bool files_are_large(void)
{
	int major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	return major > 6 || (major == 6 && minor >= 16);
}

/* Until an eviction found huge pages that can't be split, or a minute. */
static bool wait_huge(void)
{
	bool found = false;
	int i;

	for (i = 0; i < 6000 && !found; i++) {
		usleep(10000);
		found = !strncmp(guest_read(EVICT), "state runs", 10) && report("huge") > 0;
	}
	printf("# huge %lld, moved %lld after %d ms\n", report("huge"), report("moved"), i * 10);
	return found;
}

/*
 * A slow eviction waits after it found a file's dirty data, which keep a huge page from being
 * split. The file system may go meanwhile: a kernel that finds the file in use then stops.
 */
static void unmounted(void)
{
	bool found;
	pid_t pid;
	char *p;
	int err;

	mkdir(MOUNT, 0755);
	if (!files_are_large() || system("mkfs.ext4 -q -F " DEVICE " 2>/dev/null") ||
	    mount(DEVICE, MOUNT, "ext4", 0, NULL)) {
		guest_skip("unmounted", "no file system of huge pages on " DEVICE);
		return;
	}
	evict();
	guest_write("lists", "drain");
	/* Nothing else writes the file meanwhile. */
	guest_set_kernel(WRITEBACK, "0");
	p = write_mixed();
	pid = fork();
	if (!pid)
		_exit(-guest_write(EVICT, "1 rate=1048576"));
	found = wait_huge();
	err = umount(MOUNT) ? errno : 0;
	guest_set_kernel(WRITEBACK, "500");
	guest_check(found && !err, "unmounted", "found %d, %s", found, strerror(err));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(p, MIXED);
}

/* ---- pinned for a device ---- */

static void pinned(void)
{
	const size_t bytes = 64 * MIB;
	char *p = guest_map_anon(bytes);
	struct iovec buffer = { p, bytes };
	char params[120] = "";
	long before, after;
	int ring, i;

	guest_write("lists", "drain");
	madvise(p, bytes, MADV_NOHUGEPAGE);
	guest_touch(p, bytes);
	ring = syscall(SYS_io_uring_setup, 1, params);
	if (ring < 0 || syscall(SYS_io_uring_register, ring, 0, &buffer, 1)) {
		guest_skip("pinned", "no io_uring");
		return;
	}
	before = in_set(p, bytes);
	evict();
	after = in_set(p, bytes);
	guest_check(before > 100 && after == before &&
		    report("pinned") >= before, "pinned-stay",
		    "%ld of %ld stayed, pinned %lld", after, before,
		    report("pinned"));
	guest_check(held("pinned") >= before, "pinned-seen", "%lld",
		    held("pinned"));
	close(ring);
	/* The ring goes a moment later. Its work of ours may interrupt a read: -1. */
	for (i = 0; i < 200 && held("pinned"); i++)
		usleep(100000);
	evict();
	after = in_set(p, bytes);
	guest_check(after <= before / 50 && !report("pinned"),
		    "pinned-no-more-go", "%ld of %ld stayed", after, before);
}

/* ---- reserve ---- */

/* A stranger has locked memory there, which only an eviction moves. */
static void reserved(void)
{
	struct servant s;
	long before;
	int err;

	guest_set_kernel(LOCKED, "1");
	guest_write("lists", "drain");
	s = serve(NULL, 600 * MIB, SERVE_LOCKED);
	before = servant_in(&s, SET);
	err = guest_write("groups/mine/reserve", "48M");
	guest_check(!err && before > 6000, "reserve-evicts", "%d %s; %ld there",
		    err, guest_status(), before);
	guest_check(guest_stat("groups/mine/stats", "listed") >= 12288,
		    "reserve-listed", "%lld",
		    guest_stat("groups/mine/stats", "listed"));
	guest_check(dismiss(&s), "reserve-content", "it changed");
	guest_write("groups/mine/reserve", "0");
	guest_write("groups/mine/mode", "shareable");
	guest_write("lists", "drain");
	s = serve(NULL, 600 * MIB, SERVE_LOCKED);
	err = guest_write("groups/mine/reserve", "48M");
	guest_check(err == -ENOSPC, "reserve-of-a-shareable-group-does-not",
		    "%d %s", err, guest_status());
	dismiss(&s);
	guest_write("groups/mine/mode", "exclusive");
}

int main(void)
{
	int disk;

	guest_run_on(0);	/* memory comes from node 0 */
	guest_group("mine", "3");
	if (guest_write("groups/mine/mode", "exclusive"))
		guest_die("mode: %s", guest_status());
	if (system("modprobe null_blk nr_devices=1 gb=2 memory_backed=1 2>/dev/null") ||
	    (disk = open(DEVICE, O_RDWR)) < 0) {
		guest_skip("cache", "no null_blk");
	} else {
		clean_cache(disk);
		mapped_cache(disk);
		dirty_cache(disk);
		close(disk);
		unmounted();
		if (system("rmmod null_blk"))
			printf("# null_blk stays\n");
	}
	pinned();
	reserved();
	guest_ungroup("mine");
	guest_write("lists", "drain");
	return guest_exit();
}
