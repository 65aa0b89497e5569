/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `text`: a page of a file that a coloured task only reads is a copy in colour
 * (private) or the page cache's own (shared); what it may write is in colour
 * either way. A copy is not cleared before: nothing of what was in the frame
 * may be left. Of a file that others may write, which is no program, it has no
 * copy: it must see what they write, as on Linux. Unless the group wants it (all).
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SET 2u

static bool in_color(const volatile char *at)
{
	struct sol_frame_color color;

	return !sol_map_color(guest_map(), guest_pfn(0, (const void *)at),
			      &color) && color.bank_set == SET;
}

/* What became of a page of this program that a member read. */
enum copy { OF_CACHE, COPY_IN_COLOR, COPY_ELSEWHERE, NOT_READ };

static volatile char *page_of_program(int prot, int flags)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	volatile char *p = mmap(NULL, GUEST_PAGE, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		guest_die("map of /proc/self/exe: %m");
	(void)*p;
	return p;
}

/*
 * The frame itself tells a copy from the cache's page: one frame in eight of
 * the cache is in the set by chance.
 */
static enum copy child(int prot)
{
	volatile char *cached = page_of_program(PROT_READ, MAP_SHARED);
	u64 frame = guest_pfn(0, (const void *)cached);
	volatile char *p;

	munmap((void *)cached, GUEST_PAGE);
	if (!frame || guest_join("reader"))
		return NOT_READ;
	p = page_of_program(prot, MAP_PRIVATE);
	if (prot & PROT_WRITE)
		*p = *p;
	if (guest_pfn(0, (const void *)p) == frame)
		return OF_CACHE;
	return in_color(p) ? COPY_IN_COLOR : COPY_ELSEWHERE;
}

static enum copy read_by_member(int prot)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(child(prot));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_READ;
}

static void check_copy(int prot, enum copy wanted, const char *name)
{
	enum copy got = read_by_member(prot);

	guest_check(got == wanted, name, "copy %d, wanted %d", got, wanted);
}

#define DIRTY (16ul << 20)	/* bytes: more than the program, and the magazines */

/* Frames of the group with anything but zeroes in them, free again. */
static void leave_dirty(void)
{
	char *p = mmap(NULL, DIRTY, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		guest_die("mmap: %m");
	memset(p, 0xa5, DIRTY);
	munmap(p, DIRTY);
}

/* Pages of this program whose copies are not what the file has. */
static int wrong_copies(void)
{
	int fd = open("/proc/self/exe", O_RDONLY), wrong = 0;
	off_t size = lseek(fd, 0, SEEK_END), at;
	char page[GUEST_PAGE];
	char *copy;

	if (guest_join("reader"))
		return -1;
	leave_dirty();
	copy = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (copy == MAP_FAILED)
		guest_die("map of /proc/self/exe: %m");
	for (at = 0; at < size; at += GUEST_PAGE) {
		memset(page, 0, sizeof(page));	/* as behind the file's end */
		if (pread(fd, page, sizeof(page), at) <= 0)
			guest_die("read of /proc/self/exe: %m");
		wrong += !!memcmp(page, copy + at, sizeof(page));
	}
	return wrong;
}

static void check_content(void)
{
	int status, wrong = -1;
	pid_t pid = fork();

	if (!pid) {
		wrong = wrong_copies();
		_exit(wrong < 0 || wrong > 100 ? 101 : wrong);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status))
		wrong = WEXITSTATUS(status);
	guest_check(!wrong, "text-copies-are-whole", "%d pages differ", wrong);
}

/* ---- A program whose head is not in memory ---- */

/* A program on the host's disk that nobody runs. */
static int open_other(void)
{
	char name[512];
	ssize_t n = readlink("/proc/self/exe", name, sizeof(name) - 8);
	char *end;
	int fd;

	name[n < 0 ? 0 : n] = 0;
	end = strrchr(name, '/');
	if (!end)
		guest_die("readlink of /proc/self/exe: %m");
	strcpy(end, "/cover");
	fd = open(name, O_RDONLY);
	if (fd < 0)
		guest_die("open %s: %m", name);
	return fd;
}

static volatile char *map_pages(void *at, int n, int prot, int flags, int fd, int first)
{
	char *p = mmap(at, n * GUEST_PAGE, prot, flags, fd, first * GUEST_PAGE);

	if (p == MAP_FAILED)
		guest_die("mmap: %m");
	return p;
}

/* Its pages: the head, three of code, two of constants. */
static enum copy headless(void)
{
	int fd = open_other();
	volatile char *cached = map_pages(NULL, 6, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char resident = 1;
	volatile char *p;
	u64 frame;

	(void)cached[5 * GUEST_PAGE];
	frame = guest_pfn(0, (const void *)(cached + 5 * GUEST_PAGE));
	munmap((void *)cached, 6 * GUEST_PAGE);
	if (!frame || guest_join("reader"))
		return NOT_READ;
	p = map_pages(NULL, 6, PROT_READ, MAP_PRIVATE, fd, 0);
	map_pages((void *)(p + GUEST_PAGE), 3, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
		  fd, 1);
	if (posix_fadvise(fd, 0, GUEST_PAGE, POSIX_FADV_DONTNEED) ||
	    mincore((void *)p, GUEST_PAGE, &resident) || resident & 1)
		return NOT_READ;
	(void)p[5 * GUEST_PAGE];
	if (guest_pfn(0, (const void *)(p + 5 * GUEST_PAGE)) == frame)
		return OF_CACHE;
	return in_color(p + 5 * GUEST_PAGE) ? COPY_IN_COLOR : COPY_ELSEWHERE;
}

/* A full machine takes the head's page, which no coloured task maps. */
static void check_headless(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(headless());
	waitpid(pid, &status, 0);
	guest_check(WIFEXITED(status) && WEXITSTATUS(status) == COPY_IN_COLOR,
		    "text-without-its-head-is-copied", "status %#x", status);
}

/* ---- A file that others write ---- */

#define SEES_WRITES	1	/* bits of the status of a reader */
#define IN_COLOR	2

static const char path[] = "/tmp/data";

static void put(char byte)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	char page[GUEST_PAGE];

	memset(page, byte, sizeof(page));
	if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page))
		guest_die("write of %s: %m", path);
	close(fd);
}

/* A member reads a page of the file; others, who open it then, write to it. */
static int read_then_write(int prot)
{
	int fd = open(path, O_RDONLY), is = 0;
	volatile char *p = mmap(NULL, GUEST_PAGE, prot, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED || guest_join("reader") || *p != 1)
		return -1;
	put(2);
	is = *p == 2 ? SEES_WRITES : 0;
	if (prot & PROT_WRITE)
		*p = 3;
	/* A frame of the cache may be in the set by chance. */
	if (is && !(prot & PROT_WRITE))
		return is;
	return is | (in_color(p) ? IN_COLOR : 0);
}

static void check_data(int prot, int wanted, const char *name)
{
	int status;
	pid_t pid;

	put(1);
	pid = fork();
	if (!pid)
		_exit(read_then_write(prot));
	waitpid(pid, &status, 0);
	guest_check(WIFEXITED(status) && WEXITSTATUS(status) == wanted, name,
		    "status %#x, wanted %d", status, wanted);
}

int main(void)
{
	guest_group("reader", "2");
	check_copy(PROT_READ | PROT_EXEC, COPY_IN_COLOR,
		   "text-private-is-copied");
	check_content();
	check_headless();
	check_data(PROT_READ, SEES_WRITES, "data-sees-writes");
	check_data(PROT_READ | PROT_WRITE, SEES_WRITES | IN_COLOR,
		   "data-sees-writes-until-its-own");
	check_data(PROT_READ | PROT_EXEC, IN_COLOR, "text-of-any-file-is-copied");
	if (guest_write("groups/reader/text", "all"))
		guest_die("text: %s", guest_status());
	check_data(PROT_READ, IN_COLOR, "text-all-copies-data");
	if (guest_write("groups/reader/text", "private"))
		guest_die("text: %s", guest_status());
	guest_check(guest_write("groups/reader/text", "some") < 0,
		    "text-refuses", "took it");
	if (guest_write("groups/reader/text", "shared"))
		guest_die("text: %s", guest_status());
	check_copy(PROT_READ | PROT_EXEC, OF_CACHE,
		   "text-shared-is-the-cache's");
	check_copy(PROT_READ | PROT_WRITE, COPY_IN_COLOR,
		   "text-shared-but-not-data");
	guest_ungroup("reader");
	return guest_exit();
}
