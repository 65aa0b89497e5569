/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `text`: a page of a file that a coloured task only reads is a copy in colour
 * (private) or the page cache's own (shared); what it may write is in colour
 * either way. A copy is not cleared before: nothing of what was in the frame
 * may be left.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <fcntl.h>
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
	copy = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
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

int main(void)
{
	guest_group("reader", "2");
	check_copy(PROT_READ, COPY_IN_COLOR, "text-private-is-copied");
	check_content();
	guest_check(guest_write("groups/reader/text", "some") < 0,
		    "text-refuses", "took it");
	if (guest_write("groups/reader/text", "shared"))
		guest_die("text: %s", guest_status());
	check_copy(PROT_READ, OF_CACHE, "text-shared-is-the-cache's");
	check_copy(PROT_READ | PROT_WRITE, COPY_IN_COLOR,
		   "text-shared-but-not-data");
	guest_ungroup("reader");
	return guest_exit();
}
