// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays by frame number. 9 bytes for each frame are 2.25 GiB for each TiB of memory.
 * vmalloc() would put all of it on the node where the module happens to be loaded,
 * and every free on other nodes would access that node. Here each part of the array
 * is on the node of the frames that it describes, since a fault mostly takes a
 * frame near its CPU.
 *
 * Frame numbers have holes: memory that is plugged in may lie TiBs above the rest. All
 * parts that describe a block of frames without memory are one and the same page, of
 * zeros. Nobody writes to it: no frame of such a block is ever ours. If memory is
 * plugged in there later, it is not coloured (sol_array_has()), as it is not above the
 * array's end.
 *
 * Locking: none; arrays are made before anything is handed out.
 */
#include <linux/bitmap.h>
#include <linux/gfp.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "array.h"

/* Slots change places within a block, so that a block is the least that has memory. */
#define BLOCK	(1ul << SOL_SLOT_BITS)

/* Blocks with memory, and how many frames all have. */
static unsigned long *blocks;
static u64 n_frames;

/* ---- Blocks with memory ---- */

static bool has_memory(u64 block)
{
	u64 pfn = block * BLOCK, end = pfn + BLOCK;

	for (; pfn < end; pfn += min(BLOCK, PAGES_PER_SUBSECTION))
		if (pfn_valid(pfn))
			return true;
	return false;
}

int sol_array_init(u64 n)
{
	u64 i, n_blocks = DIV_ROUND_UP(n, BLOCK);

	n_frames = n;
	blocks = kvcalloc(BITS_TO_LONGS(n_blocks), sizeof(long), GFP_KERNEL);
	if (!blocks)
		return -ENOMEM;
	for (i = 0; i < n_blocks; i++) {
		if (has_memory(i))
			__set_bit(i, blocks);
		cond_resched();
	}
	return 0;
}

void sol_array_exit(void)
{
	kvfree(blocks);
	blocks = NULL;
}

/* The block in which the last frame lies has slots beyond it. */
static bool block_has(u64 pfn)
{
	return test_bit(pfn >> SOL_SLOT_BITS, blocks);
}

bool sol_array_has(u64 pfn)
{
	return pfn < n_frames && block_has(pfn);
}

/* ---- Arrays ---- */

/* A part that describes no online memory goes to the node of the part before it. */
static int node_of(u64 pfn, int before)
{
	struct page *page = pfn_to_online_page(pfn);

	return page ? page_to_nid(page) : before;
}

static void free_pages_of(struct page **pages, u64 n)
{
	while (n)
		__free_page(pages[--n]);
	kvfree(pages);
}

/* One page more of @array for @pfn: of its own, or a further reference to @hole. */
static struct page *page_for(u64 pfn, int *nid, struct page *hole)
{
	if (!block_has(pfn)) {
		get_page(hole);
		return hole;
	}
	*nid = node_of(pfn, *nid);
	return alloc_pages_node(*nid, GFP_KERNEL | __GFP_ZERO, 0);
}

static void *map_pages(u64 count, u64 frames_of_one, struct page *hole)
{
	struct page **pages;
	int nid = numa_mem_id();
	void *array = NULL;
	u64 i;

	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (i = 0; i < count; i++) {
		pages[i] = page_for(i * frames_of_one, &nid, hole);
		if (!pages[i])
			break;
		if (!(i % 1024))
			cond_resched();
	}
	if (i == count)
		array = vmap(pages, count, VM_MAP | VM_MAP_PUT_PAGES,
			     PAGE_KERNEL);
	if (!array)
		free_pages_of(pages, i);
	return array;
}

/* /proc/vmallocinfo shows it by its name. */
noinline void *sol_array_new(u64 n, size_t size)
{
	struct page *hole = alloc_page(GFP_KERNEL | __GFP_ZERO);
	void *array;

	if (!hole)
		return NULL;
	array = map_pages(DIV_ROUND_UP(n * size, PAGE_SIZE), PAGE_SIZE / size,
			  hole);
	__free_page(hole);	/* the array has references of its own */
	return array;
}
