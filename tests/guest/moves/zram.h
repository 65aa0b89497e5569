/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A swap device on zram. */
#ifndef ZRAM_H
#define ZRAM_H

#include <sys/swap.h>

#include "moves.h"

/* What mkswap(8) writes. */
static inline int make_swap(const char *device, size_t bytes)
{
	static char page[64 << 10];
	u32 *info = (u32 *)(page + 1024);
	int fd = open(device, O_RDWR);
	int good;

	if (fd < 0)
		return -errno;
	info[0] = 1;				/* version */
	info[1] = bytes / GUEST_PAGE - 1;	/* last page */
	memcpy(page + GUEST_PAGE - 10, "SWAPSPACE2", 10);
	good = pwrite(fd, page, GUEST_PAGE, 0) == (ssize_t)GUEST_PAGE;
	fsync(fd);
	close(fd);
	return good ? 0 : -EIO;
}

/* @disksize is @bytes in words. False: this guest has no zram. */
static inline bool swap_on_zram(const char *disksize, size_t bytes)
{
	if (access("/sys/block/zram0/disksize", W_OK) &&
	    system("modprobe zram num_devices=1"))
		return false;
	set_kernel("/sys/block/zram0/reset", "1");
	return !set_kernel("/sys/block/zram0/disksize", disksize) &&
	       !make_swap("/dev/zram0", bytes) && !swapon("/dev/zram0", 0);
}

#endif /* ZRAM_H */
