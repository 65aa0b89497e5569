/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `text`: a page of a file that a coloured task only reads is a copy in colour
 * (private) or the page cache's own (shared); what it may write is in colour
 * either way.
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

/* Of a page of this program: 1 if it is in colour when read, 0 if not. */
static int child(int prot)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	volatile char *p;

	if (guest_join("reader"))
		_exit(3);
	p = mmap(NULL, GUEST_PAGE, prot, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		_exit(4);
	(void)*p;
	return in_color(p);
}

static int read_in_color(int prot)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(child(prot));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	guest_group("reader", "2");
	guest_check(read_in_color(PROT_READ) == 1, "text-private-is-copied",
		    "not in colour");
	guest_check(guest_write("groups/reader/text", "some") < 0,
		    "text-refuses", "took it");
	if (guest_write("groups/reader/text", "shared"))
		guest_die("text: %s", guest_status());
	guest_check(read_in_color(PROT_READ) == 0, "text-shared-is-the-cache's",
		    "copied");
	guest_check(read_in_color(PROT_READ | PROT_WRITE) == 1,
		    "text-shared-but-not-data", "not in colour");
	guest_ungroup("reader");
	return guest_exit();
}
