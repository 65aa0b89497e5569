/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Acts on a worker's own memory: everything that makes, moves or ends pages. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE		4096ul
#define REGIONS		8
#define MOST		(4ul << 20)
#define POLICIES	7	/* MPOL_DEFAULT to MPOL_WEIGHTED_INTERLEAVE */

static struct region {
	char *at;
	size_t bytes;
} regions[REGIONS];

/* A region, and a range of whole pages in it. */
struct range {
	char *at;
	size_t bytes;
};

static struct range draw_range(struct draw *d)
{
	const struct region *r = &regions[draw(d, REGIONS)];
	unsigned int from = draw(d, 1024), pages = 1 + draw(d, 1024);
	size_t all = r->bytes / PAGE;

	if (!all)
		return (struct range){ 0 };
	from %= all;
	if (pages > all - from)
		pages = all - from;
	return (struct range){ r->at + from * PAGE, pages * PAGE };
}

/* Written by the kernel, so that a range that is not writable is no signal. */
static bool written(char *at, size_t bytes, size_t step)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	bool done = true;

	for (size_t i = 0; i < bytes && done; i += step)
		done = read(zero, at + i, 1) == 1;
	close(zero);
	return done;
}

static bool map_region(struct draw *d)
{
	struct region *r = &regions[draw(d, REGIONS)];
	size_t bytes = PAGE << draw(d, 11);
	unsigned int kind = draw(d, 12);
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char path[64];

	switch (kind) {
	case 0:
		flags = MAP_SHARED | MAP_ANONYMOUS;
		break;
	case 1:
		flags |= MAP_HUGETLB;
		break;
	case 2:
		flags |= MAP_POPULATE;
		break;
	case 3:
	case 4:
		snprintf(path, sizeof(path), FUZZ_DIR "/file%u", draw(d, 3));
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0 && ftruncate(fd, MOST))
			return false;
		flags = kind == 3 ? MAP_PRIVATE : MAP_SHARED;
		break;
	case 5:		/* text and data of a program */
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		flags = MAP_PRIVATE;
		break;
	}
	if (r->at)
		munmap(r->at, r->bytes);
	r->at = mmap(NULL, bytes, PROT_READ | (kind == 5 && fd >= 0 ? 0 : PROT_WRITE),
		     flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (r->at == MAP_FAILED)
		*r = (struct region){ 0 };
	else
		r->bytes = bytes;
	return r->at;
}

static bool unmap(struct draw *d)
{
	struct range r = draw_range(d);

	return r.at && !munmap(r.at, r.bytes);
}

void memory_touch(struct draw *d)
{
	struct range r = draw_range(d);

	if (r.at)
		written(r.at, r.bytes, PAGE);
}

static bool touch(struct draw *d)
{
	struct range r = draw_range(d);

	return r.at && written(r.at, r.bytes, PAGE);
}

/* Read faults, by the kernel too. */
static bool look(struct draw *d)
{
	struct range r = draw_range(d);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), fds[2];
	bool done = false;

	if (r.at && !pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
		for (size_t i = 0; i < r.bytes; i += PAGE) {
			char c;

			done = write(fds[1], r.at + i, 1) == 1 &&
			       read(fds[0], &c, 1) == 1;
		}
		close(fds[0]);
		close(fds[1]);
	}
	close(null);
	return done;
}

static bool remap(struct draw *d)
{
	struct region *r = &regions[draw(d, REGIONS)];
	size_t bytes = PAGE << draw(d, 11);
	int flags = draw_one_in(d, 4) ? 0 : MREMAP_MAYMOVE;
	char *at;

	if (!r->at)
		return false;
	at = mremap(r->at, r->bytes, bytes, flags);
	if (at == MAP_FAILED)
		return false;
	*r = (struct region){ at, bytes };
	return true;
}

static bool protect(struct draw *d)
{
	struct range r = draw_range(d);
	int prot = draw(d, 3) ? PROT_READ | PROT_WRITE : draw(d, 8);

	return r.at && !mprotect(r.at, r.bytes, prot);
}

static bool advise(struct draw *d)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE,
		MADV_NOHUGEPAGE, MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_COLD,
		MADV_PAGEOUT, MADV_PAGEOUT, MADV_POPULATE_READ,
		MADV_POPULATE_WRITE, MADV_DONTFORK, MADV_DOFORK,
		MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_REMOVE, MADV_WILLNEED,
		25 /* MADV_COLLAPSE */, 102 /* MADV_GUARD_INSTALL */,
		103 /* MADV_GUARD_REMOVE */,
	};
	struct range r = draw_range(d);
	int advice = advices[draw(d, sizeof(advices) / sizeof(*advices))];

	return r.at && !madvise(r.at, r.bytes, advice);
}

/* A page leaves for good. */
static bool take_offline(struct draw *d)
{
	struct range r = draw_range(d);

	return r.at && !madvise(r.at, PAGE, 101 /* MADV_SOFT_OFFLINE */);
}

static bool lock(struct draw *d)
{
	struct range r = draw_range(d);
	bool on = draw(d, 2);

	if (!r.at)
		return false;
	return on ? !mlock2(r.at, r.bytes, draw(d, 2) ? MLOCK_ONFAULT : 0) :
		    !munlock(r.at, r.bytes);
}

/* Pages in a pipe outlive the mapping, and so may pinned ones. */
static bool splice_out(struct draw *d)
{
	struct range r = draw_range(d);
	struct iovec v = { r.at, r.bytes < 8 * PAGE ? r.bytes : 8 * PAGE };
	unsigned int flags = draw(d, 2) ? SPLICE_F_GIFT : 0;
	bool done, gone = draw(d, 2);
	int fds[2];

	if (!r.at || pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return false;
	done = vmsplice(fds[1], &v, 1, flags) > 0;
	if (gone)
		madvise(r.at, r.bytes, MADV_DONTNEED);
	close(fds[0]);
	close(fds[1]);
	return done;
}

#define REGISTER_BUFFERS 0

static bool pin(struct draw *d)
{
	static int ring = -1;
	struct range r = draw_range(d);
	struct iovec v = { r.at, r.bytes };
	char params[120] = "";

	if (ring >= 0) {
		close(ring);
		ring = -1;
		return true;
	}
	ring = syscall(SYS_io_uring_setup, 1, params);
	if (ring < 0)
		return false;
	fcntl(ring, F_SETFD, FD_CLOEXEC);
	return r.at && !syscall(SYS_io_uring_register, ring, REGISTER_BUFFERS,
				&v, 1);
}

/* Pages put there by another than a fault. */
static bool userfault(struct draw *d)
{
	static char source[16 * PAGE];
	struct range r = draw_range(d);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_copy copy = { .src = (unsigned long)source };
	bool zero = draw_one_in(d, 3), done = false;
	int fd;

	if (!r.at)
		return false;
	fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	reg.range.start = copy.dst = (unsigned long)r.at;
	reg.range.len = r.bytes;
	copy.len = r.bytes < sizeof(source) ? r.bytes : sizeof(source);
	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api) &&
	    !ioctl(fd, UFFDIO_REGISTER, &reg)) {
		struct uffdio_zeropage z = {
			.range = { copy.dst, copy.len },
		};

		madvise(r.at, copy.len, MADV_DONTNEED);
		done = zero ? !ioctl(fd, UFFDIO_ZEROPAGE, &z) :
			      !ioctl(fd, UFFDIO_COPY, &copy);
		ioctl(fd, UFFDIO_UNREGISTER, &reg.range);
	}
	if (fd >= 0)
		close(fd);
	return done;
}

/* What may not be written is, as by a debugger: a copy for the writer. */
static bool force(struct draw *d)
{
	struct range r = draw_range(d);
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	bool done = r.at && fd >= 0 &&
		    pwrite(fd, "x", 1, (off_t)(unsigned long)r.at) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

/* ---- policies ---- */

static int draw_policy(struct draw *d)
{
	static const int flags[] = { 0, 0, 1 << 15, 1 << 14, 1 << 13 };

	return draw(d, POLICIES) | flags[draw(d, 5)];
}

static bool set_policy(struct draw *d)
{
	int mode = draw(d, 2) ? 0 : draw_policy(d);
	unsigned long nodes = draw(d, 4);

	return !syscall(SYS_set_mempolicy, mode, mode ? &nodes : NULL,
			mode ? 8 : 0);
}

static bool bind_range(struct draw *d)
{
	struct range r = draw_range(d);
	int mode = draw_policy(d);
	unsigned long nodes = draw(d, 4);
	unsigned int flags = draw(d, 8);	/* MPOL_MF_STRICT, _MOVE, _MOVE_ALL */

	return r.at && !syscall(SYS_mbind, r.at, r.bytes, mode, &nodes, 8, flags);
}

static bool move_all(struct draw *d)
{
	unsigned long from = 1 + draw(d, 3), to = 1 + draw(d, 3);
	pid_t pid = draw(d, 2) ? 0 : fuzz->pid[draw(d, FUZZ_WORKERS)];

	return !syscall(SYS_migrate_pages, pid, 8, &from, &to);
}

static bool move_some(struct draw *d)
{
	struct range r = draw_range(d);
	void *pages[16];
	int nodes[16], status[16], node = draw(d, 2);
	unsigned int n;

	for (n = 0; n < 16 && n * PAGE < r.bytes; n++) {
		pages[n] = r.at + n * PAGE;
		nodes[n] = node;
	}
	return n && !syscall(SYS_move_pages, 0, n, pages, nodes, status,
			     2 /* MPOL_MF_MOVE */);
}

const struct act memory_acts[] = {
	{ "map", 25, map_region },
	{ "unmap", 8, unmap },
	{ "touch", 40, touch },
	{ "look", 10, look },
	{ "mremap", 6, remap },
	{ "mprotect", 6, protect },
	{ "madvise", 25, advise },
	{ "soft-offline", 1, take_offline },
	{ "mlock", 4, lock },
	{ "vmsplice", 4, splice_out },
	{ "pin", 3, pin },
	{ "userfault", 4, userfault },
	{ "force-write", 4, force },
	{ "set-mempolicy", 5, set_policy },
	{ "mbind", 6, bind_range },
	{ "migrate-pages", 2, move_all },
	{ "move-pages", 3, move_some },
	{ NULL, 0, NULL },
};
