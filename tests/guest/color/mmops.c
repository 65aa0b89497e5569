/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Everything that a program does to its mappings keeps it in colour, keeps
 * its data, and gives pages back to their lists.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SETS "1"
#define BYTES (4ul << 20)
#define PAGES ((long)(BYTES / GUEST_PAGE))

static bool all_in(const char *name, const void *p, size_t bytes)
{
	struct guest_audit sum = guest_audit_range(p, bytes, SETS, NULL);

	return guest_check(!sum.out && sum.in >= (long)(bytes / GUEST_PAGE),
			   name, "%ld in, %ld out of %zu", sum.in, sum.out,
			   bytes / GUEST_PAGE);
}

static void check_zero(const char *name, const char *p, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (p[i])
			break;
	guest_check(i == bytes, name, "byte %zu is %#x", i, p[i < bytes ? i : 0]);
}

static void remap(void)
{
	char *p = guest_map_anon(BYTES), *q;

	guest_touch(p, BYTES);
	q = mremap(p, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	guest_check(q != MAP_FAILED, "mremap", "%s", strerror(errno));
	if (q == MAP_FAILED)
		return;
	guest_touch(q + BYTES, BYTES);
	all_in("mremap-in-color", q, 2 * BYTES);
	q = mremap(q, 2 * BYTES, BYTES / 2, 0);
	guest_check(q != MAP_FAILED && q[0] == 1, "mremap-shrink", "lost data");
	munmap(q, BYTES / 2);
}

static void advise(void)
{
	char *p = guest_map_anon(BYTES);
	struct guest_audit sum;
	int i;

	for (i = 0; i < 4; i++) {
		memset(p, 0xa5, BYTES);
		madvise(p, BYTES, MADV_DONTNEED);
		sum = guest_audit_range(p, BYTES, SETS, NULL);
		guest_check(sum.present == 0, "madvise-dontneed",
			    "%ld pages still there", sum.present);
	}
	/* Recycled frames must come back zeroed, dirty as they were left. */
	check_zero("recycled-pages-are-zero", p, BYTES);
	all_in("after-dontneed", p, BYTES);
	memset(p, 0x5a, BYTES);
	guest_check(!madvise(p, BYTES, MADV_FREE), "madvise-free", "%s",
		    strerror(errno));
	guest_touch(p, BYTES);
	all_in("after-free", p, BYTES);
	munmap(p, BYTES);
}

static void locked(void)
{
	char *p = guest_map_anon(BYTES), *q;

	guest_check(!mlock(p, BYTES), "mlock", "%s", strerror(errno));
	all_in("mlock-in-color", p, BYTES);
	munlock(p, BYTES);
	munmap(p, BYTES);
	q = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	guest_check(q != MAP_FAILED, "populate", "%s", strerror(errno));
	all_in("populate-in-color", q, BYTES);
	munmap(q, BYTES);
}

static void file_private(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	static char page[64 << 10];
	char *p;
	long i;

	if (fd < 0)
		fd = memfd_create("mmops", 0);
	memset(page, 3, GUEST_PAGE);
	for (i = 0; i < 256; i++)
		if (write(fd, page, GUEST_PAGE) != (ssize_t)GUEST_PAGE)
			guest_die("write");
	p = mmap(NULL, 256 * GUEST_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		guest_die("mmap of a file");
	for (i = 0; i < 256; i++)
		if (p[i * GUEST_PAGE] != 3)
			break;
	guest_check(i == 256, "private-file-data", "page %ld", i);
	all_in("private-file-in-color", p, 256 * GUEST_PAGE);
	munmap(p, 256 * GUEST_PAGE);
	close(fd);
}

static void shared(void)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		guest_die("shared mmap");
	memset(p, 9, BYTES);
	guest_check(p[BYTES - 1] == 9, "shared-memory", "wrong content");
	munmap(p, BYTES);
}

static void program_break(void)
{
	char *old = sbrk(0);

	guest_check(sbrk(BYTES) != (void *)-1, "brk", "%s", strerror(errno));
	guest_touch(old, BYTES);
	all_in("brk-in-color", (char *)(((unsigned long)old + GUEST_PAGE - 1) &
				    ~(GUEST_PAGE - 1)),
	       BYTES - GUEST_PAGE);
	guest_check(sbrk(-(long)BYTES) != (void *)-1, "brk-back", "%s",
		    strerror(errno));
}

int main(void)
{
	long long used, after;
	char *p;

	guest_group("mmops", SETS);
	if (guest_join("mmops"))
		guest_die("join: %s", guest_status());
	remap();
	advise();
	locked();
	if (guest_write("groups/mmops/text", "all"))
		guest_die("text: %s", guest_status());
	file_private();
	shared();
	program_break();

	/*
	 * Pages given back are found again: no leak, by the module's count. The kernel's
	 * batches for its LRU lists may hold some until they are drained.
	 */
	p = guest_map_anon(BYTES);
	guest_touch(p, BYTES);
	used = guest_stat("groups/mmops/stats", "pages");
	munmap(p, BYTES);
	guest_set_kernel("/proc/sys/vm/drop_caches", "1");
	after = guest_stat("groups/mmops/stats", "pages");
	/* Some pages of our own (stdio, tables) may come meanwhile. */
	guest_check(used - after >= PAGES - 16,
		    "pages-come-back", "%lld pages before, %lld after munmap",
		    used, after);
	return guest_exit();
}
