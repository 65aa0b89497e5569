// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A machine that has been running: busy-memory full|fragmented. It says when memory is
 * so, and keeps it so until it is killed.
 *
 *   full        clean page cache fills memory, down to what the kernel keeps free
 *   fragmented  a program has most of memory; a tenth of that are free single pages
 *
 * The page cache is that of a null_blk device, which reads in no time. It lasts as long
 * as somebody has the device open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"

#define MIB	(1ul << 20)
#define PAGE	((size_t)sysconf(_SC_PAGESIZE))
#define DEVICE	"/dev/nullb0"

static int die(const char *what)
{
	fprintf(stderr, "busy-memory: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void full(void)
{
	/* Few devices let more be read ahead at a time. */
	const size_t step = MIB / 8;
	long least = meminfo("MemFree"), now;
	int fd, in_vain = 0;
	char command[96];
	size_t at;

	snprintf(command, sizeof(command),
		 "modprobe null_blk nr_devices=1 gb=%ld 2>/dev/null",
		 3 * meminfo("MemTotal") / 1024 + 1);
	if (system(command))
		die("modprobe null_blk");
	fd = open(DEVICE, O_RDONLY);
	if (fd < 0)
		die(DEVICE);
	/* Until reading takes no more free memory: 128 MiB in vain. */
	for (at = 0; in_vain < 16; at += step) {
		if (readahead(fd, at, step))
			die("readahead");
		if (at % (8 * MIB))
			continue;
		now = meminfo("MemFree");
		in_vain = now < least ? 0 : in_vain + 1;
		least = now < least ? now : least;
	}
}

static void fragmented(void)
{
	/*
	 * What is left is more than the OOM killer's mark. (MemAvailable may count for
	 * a second what the module has given back.)
	 */
	size_t bytes = meminfo("MemFree") / 16 * 15 * MIB, hole, at;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	madvise(p, bytes, MADV_NOHUGEPAGE);
	for (at = 0; at < bytes; at += PAGE)
		p[at] = 1;
	/* Every tenth page, but for what is free already. */
	hole = 10 * PAGE;
	for (at = 0; at + PAGE <= bytes; at += hole)
		madvise(p + at, PAGE, MADV_DONTNEED);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "full")) {
		full();
	} else if (argc == 2 && !strcmp(argv[1], "fragmented")) {
		fragmented();
	} else {
		fprintf(stderr, "usage: busy-memory full|fragmented\n");
		return 2;
	}
	printf("# %s: %ld of %ld MiB free, %ld MiB of page cache\n", argv[1],
	       meminfo("MemFree"), meminfo("MemTotal"), meminfo("Cached") + meminfo("Buffers"));
	fflush(stdout);
	for (;;)
		pause();
}
