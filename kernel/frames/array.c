// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays by frame number. 9 bytes for each frame are 2.25 GiB for each TiB of memory.
 * vmalloc() would put all of it on the node where the module happens to be loaded,
 * and every free on other nodes would access that node. Here each part of the array
 * is on the node of the frames that it describes, since a fault mostly takes a
 * frame near its CPU.
 *
 * Locking: none; arrays are made before anything is handed out.
 */
#include <linux/gfp.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "array.h"

/* A part that describes a hole goes to the node of the part before it. */
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

void *sol_array_new(u64 n, size_t size)
{
	u64 count = DIV_ROUND_UP(n * size, PAGE_SIZE), i;
	struct page **pages;
	int nid = numa_mem_id();
	void *array = NULL;

	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (i = 0; i < count; i++) {
		nid = node_of(i * (PAGE_SIZE / size), nid);
		pages[i] = alloc_pages_node(nid, GFP_KERNEL | __GFP_ZERO, 0);
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
