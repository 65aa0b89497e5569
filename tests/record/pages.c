// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Touches pages of every node and prints where the kernel says they are, for
 * tests/record/run to compare with what was recorded: `page VIRT PHYS NODE`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 64
#define PAGE 4096ul
#define MPOL_BIND 2

int main(void)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int nodes = 0;

	for (int node = 0; node < 8; node++) {
		unsigned long mask = 1ul << node;
		volatile char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED || pagemap < 0)
			return 1;
		madvise((void *)at, PAGES * PAGE, MADV_NOHUGEPAGE);
		if (syscall(SYS_mbind, at, PAGES * PAGE, MPOL_BIND, &mask, 64, 0))
			break;
		/* More lines than a page has, so that some leave every cache. */
		for (int i = 0; i < PAGES; i++)
			for (int j = 0; j < 64; j++)
				at[i * PAGE + j * 64] = i;
		for (int i = 0; i < PAGES; i++) {
			uintptr_t virt = (uintptr_t)at + i * PAGE;
			uint64_t entry;

			if (pread(pagemap, &entry, 8, virt / PAGE * 8) != 8 ||
			    !(entry >> 63))
				return 1;
			printf("page %#lx %#lx %d\n", virt / PAGE,
			       (unsigned long)(entry & ((1ull << 55) - 1)), node);
		}
		nodes++;
	}
	return nodes < 2;
}
