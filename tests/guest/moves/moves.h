/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What tests of moving pages share: settings of the stock kernel, and where a
 * buffer's frames were. Each test provokes one mechanism twice: on a coloured
 * task, whose frames must stay, and on an uncoloured one, whose frames must
 * move. Without the second the first would prove nothing, so it is a skip.
 */
#ifndef MOVES_H
#define MOVES_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/guest.h"
#include "../lib/kernel.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static inline void wait_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

#define THP "/sys/kernel/mm/transparent_hugepage/"

/* khugepaged at full speed. */
static inline void khugepaged_hurry(void)
{
	set_kernel(THP "khugepaged/scan_sleep_millisecs", "10");
	set_kernel(THP "khugepaged/alloc_sleep_millisecs", "10");
	set_kernel(THP "khugepaged/pages_to_scan", "100000");
}

/* Let khugepaged look at everything, some times over. */
static inline void khugepaged_scans(void)
{
	long long scans = kernel_number(THP "khugepaged/full_scans", NULL);
	int i;

	for (i = 0; i < 100; i++) {
		wait_ms(100);
		if (kernel_number(THP "khugepaged/full_scans", NULL) >=
		    scans + 3)
			break;
	}
}

/* Frames of @n pages at @p; 0 where none is present. */
static inline u64 *frames_of(const char *p, size_t n)
{
	u64 *pfn = calloc(n, sizeof(*pfn));
	size_t i;

	if (!pfn)
		guest_die("no memory for %zu frame numbers", n);
	for (i = 0; i < n; i++)
		pfn[i] = guest_pfn(0, p + i * GUEST_PAGE);
	return pfn;
}

/* Pages of @p that are no longer in the frames @was. */
static inline size_t frames_moved(const char *p, const u64 *was, size_t n)
{
	size_t i, moved = 0;

	for (i = 0; i < n; i++)
		moved += guest_pfn(0, p + i * GUEST_PAGE) != was[i];
	return moved;
}

/* Page @i's first word is its number times @salt: content that can be checked. */
static inline void stamp(char *p, size_t n, u64 salt)
{
	size_t i;

	for (i = 0; i < n; i++)
		*(volatile u64 *)(p + i * GUEST_PAGE) = (i + 1) * salt;
}

static inline size_t stamp_broken(const char *p, size_t n, u64 salt)
{
	size_t i, broken = 0;

	for (i = 0; i < n; i++)
		broken += *(const volatile u64 *)(p + i * GUEST_PAGE) !=
			  (i + 1) * salt;
	return broken;
}

/* Run @body in a child (uncoloured unless it joins); what it returns, or 255. */
static inline int in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(body());
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 255;
	return WEXITSTATUS(status);
}

#endif /* MOVES_H */
