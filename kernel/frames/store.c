// SPDX-License-Identifier: GPL-2.0
/*
 * Frame store: TintMalloc's matrix of colour lists, in the kernel.
 *
 * core/frames keeps the lists. This gives them memory (9 bytes for each frame of the
 * machine, a struct for each cell) and locks, and takes frames in and out. The other
 * files of the room stand above it:
 *
 *   cpu_list.c            lists of each CPU
 *   refill.c              frames come out of the buddy allocator
 *   solver.c              which frames are of a cell
 *   evacuate.c            frames that others use are made free
 *   want.c                faults ask for more frames (supply/ answers)
 *   prefill.c             lists are filled ahead of need
 *   giveback.c            frames go back to the buddy allocator
 *   remap.c               another address map is taken into use
 *
 * Differs from the papers, which patch the buddy allocator and fill its colour lists
 * from inside. Here the buddy allocator does not know of colours: a listed frame has
 * left it, with reference count 0, and comes back when it is freed, through a hook
 * behind the kernel's own checks.
 *
 * A frame counts as zero only if this module zeroed it.
 *
 * Locking: see store.h. A free may come from any context. Nothing is called while a
 * lock is held. A group is looked up, charged and left within one section with
 * preemption off.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "array.h"
#include "../group/group.h"
#include "../hook/hook.h"
#include "solver.h"
#include "store.h"

#define FREED_TRIES	50	/* looks whether a page is free at last */

struct sol_frames sol_store;
struct sol_cell_state *sol_cell_states;
DEFINE_PER_CPU(struct sol_spare, sol_spare);
atomic64_t sol_taken, sol_given, sol_lost;

DEFINE_STATIC_CALL_NULL(sol_post_alloc, sol_post_alloc_fn);
DEFINE_STATIC_KEY_FALSE(sol_debug_pages);

bool sol_store_take(u32 cell, u16 id, gfp_t gfp, enum sol_page_use use,
		    struct sol_taken *taken)
{
	struct sol_group *g = group_get_fast(id);
	unsigned long flags;
	bool zero = false;
	u32 pfn, got;

	sol_cell_lock_irqsave(cell, flags);
	got = sol_frames_hold(&sol_store, cell, gfp & __GFP_ZERO, &pfn, 1,
			      &zero);
	sol_cell_unlock_irqrestore(cell, -(long)got, flags);
	if (!got)
		return false;
	if (unlikely(!sol_frame_fit(pfn, use))) {
		if (PageHWPoison(pfn_to_page(pfn)))
			sol_store_drop(pfn);
		else
			sol_store_list(pfn, zero);
		return false;
	}
	sol_frames_use(&sol_store, cell, pfn, id);
	if (g)
		sol_group_charge(g, zero && gfp & __GFP_ZERO,
				 use == SOL_USE_TABLE);
	*taken = (struct sol_taken){ pfn, zero };
	return true;
}

u32 sol_store_hold(u64 pfn)
{
	struct sol_frame *frame = sol_frames_at(&sol_store, pfn);
	u32 tag = READ_ONCE(frame->tag), owner;
	struct sol_group *g;

	if (!(tag & SOL_TAG_USED))
		return SOL_NO_CELL;
	if (cmpxchg(&frame->tag, tag, (tag & SOL_TAG_CELL) | SOL_TAG_HELD) !=
	    tag)
		return SOL_NO_CELL;
	/* Not before: the frame may have been freed and handed out again since. */
	owner = READ_ONCE(frame->link);
	WRITE_ONCE(frame->link, 0);
	/* The last access: with its last frame the group may go. */
	g = group_get_fast(owner);
	if (g)
		sol_group_add(g, freed, 1);
	return tag & SOL_TAG_CELL;
}

static u32 held_cell(u32 pfn)
{
	return sol_frames_at(&sol_store, pfn)->tag & SOL_TAG_CELL;
}

void sol_store_list(u32 pfn, bool zero)
{
	u32 cell = held_cell(pfn);
	unsigned long flags;

	sol_cell_lock_irqsave(cell, flags);
	sol_frames_put(&sol_store, pfn, zero);
	sol_cell_unlock_irqrestore(cell, 1, flags);
}

void sol_store_drop(u32 pfn)
{
	u32 cell = held_cell(pfn);
	unsigned long flags;

	sol_cell_lock_irqsave(cell, flags);
	sol_frames_forget(&sol_store, pfn);
	sol_cell_unlock_irqrestore(cell, 0, flags);
	atomic64_inc(&sol_lost);
}

void sol_store_forget(struct page *page)
{
	u64 pfn = page_to_pfn(page);

	preempt_disable();
	if (sol_store_hold(pfn) != SOL_NO_CELL)
		sol_store_drop(pfn);
	preempt_enable();
}

bool sol_store_adopt(u32 cell, u64 pfn)
{
	const struct sol_frame *frame = sol_frames_at(&sol_store, pfn);
	unsigned long flags;
	bool foreign;

	sol_cell_lock_irqsave(cell, flags);
	foreign = !frame->tag;
	if (foreign)
		sol_frames_adopt(&sol_store, cell, pfn);
	sol_cell_unlock_irqrestore(cell, 0, flags);
	return foreign;
}

/* Has the frame not come to us (yet)? */
static bool adopted(const struct sol_frame *frame)
{
	/* It may have, and a group may have it: sol_frames_use() writes ->link first. */
	return smp_load_acquire(&frame->tag) & SOL_TAG_USED && !READ_ONCE(frame->link);
}

static void disown(u64 pfn)
{
	unsigned long flags;
	u32 cell;

	preempt_disable();
	cell = sol_store_hold(pfn);
	if (cell != SOL_NO_CELL) {
		sol_cell_lock_irqsave(cell, flags);
		sol_frames_forget(&sol_store, pfn);
		sol_cell_unlock_irqrestore(cell, 0, flags);
	}
	preempt_enable();
}

/*
 * A page without a reference is being freed, or others hold it for a moment. While we
 * have one, nobody frees the page, and its tag stays.
 */
bool sol_store_disown(u64 pfn)
{
	const struct sol_frame *frame = sol_frames_at(&sol_store, pfn);
	struct page *page = pfn_to_page(pfn);

	bool ours;
	u32 i;

	for (i = 0; adopted(frame); i++) {
		ours = get_page_unless_zero(page);
		if (!ours && i < FREED_TRIES) {
			usleep_range(20, 50);
			continue;
		}
		if (adopted(frame))
			disown(pfn);
		if (ours)
			put_page(page);
	}
	if (!READ_ONCE(frame->tag))
		return false;
	atomic64_inc(&sol_taken);
	return true;
}

void sol_store_add(u32 cell, const u32 *pfn, u32 n)
{
	unsigned long flags;
	u32 i;

	sol_cell_lock_irqsave(cell, flags);
	for (i = 0; i < n; i++)
		sol_frames_add(&sol_store, cell, pfn[i], false);
	sol_cell_unlock_irqrestore(cell, n, flags);
	atomic64_add(n, &sol_taken);
}

void sol_store_keep(u32 cell, s32 more)
{
	struct sol_cell_state *state = &sol_cell_states[cell];
	unsigned long flags;

	sol_cell_lock_irqsave(cell, flags);
	if (!state->reserve)
		state->spare = sol_cell_listed(cell);
	WRITE_ONCE(state->reserve, state->reserve + more);
	sol_cell_recount(cell);
	sol_cell_unlock_irqrestore(cell, 0, flags);
}

void sol_store_give(u64 pfn)
{
	struct page *page = pfn_to_page(pfn);

	if (static_branch_unlikely(&sol_debug_pages))
		sol_page_prepare(page, GFP_KERNEL);
	set_page_private(page, 0);
	init_page_count(page);
	__free_page(page);
	atomic64_inc(&sol_given);
}

/* ---- Coming up, going down ---- */

/*
 * Frame numbers end above the last node. Memory that is plugged in above that later
 * is not coloured, nor is memory in a hole (array.c).
 */
static u64 frames_of_machine(void)
{
	u64 end = 0;
	int nid;

	for_each_online_node(nid)
		end = max_t(u64, end, node_end_pfn(nid));
	return end;
}

/* True also if the kernel does not tell. */
static bool key_on(const char *name)
{
	struct static_key *key = sol_symbol(name);

	return !key || static_key_enabled(key);
}

/* Poisoned, unmapped, zeroed on free, shadowed or traced by the kernel. */
static bool pages_are_debugged(void)
{
	return IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KMSAN) ||
	       key_on("init_on_free") ||
	       (IS_ENABLED(CONFIG_PAGE_POISONING) &&
		key_on("_page_poisoning_enabled")) ||
	       (IS_ENABLED(CONFIG_DEBUG_PAGEALLOC) &&
		key_on("_debug_pagealloc_enabled")) ||
	       (IS_ENABLED(CONFIG_PAGE_OWNER) &&
		key_on("page_owner_inited")) ||
	       IS_ENABLED(CONFIG_PAGE_TABLE_CHECK);
}

/* If freed pages are poisoned, unmapped or traced, the kernel prepares ours too. */
static int find_debug_pages(void)
{
	if (!pages_are_debugged())
		return 0;
	static_branch_enable(&sol_debug_pages);
	return sol_bind(sol_post_alloc, "post_alloc_hook");
}

int sol_store_init(void)
{
	u64 n = frames_of_machine();
	int err;

	if (n >= SOL_NO_FRAME) {
		pr_err("this machine's memory ends at frame %llu; at most %u are supported\n",
		       n, SOL_NO_FRAME);
		return -E2BIG;
	}
	err = find_debug_pages() ?: sol_array_init(n);
	if (err)
		return err;
	sol_store.frame = sol_array_new(sol_frames_slots(n),
					sizeof(*sol_store.frame));
	sol_store.owned = sol_array_new(n, sizeof(*sol_store.owned));
	if (!sol_store.frame || !sol_store.owned) {
		vfree(sol_store.frame);
		vfree(sol_store.owned);
		sol_array_exit();
		return -ENOMEM;
	}
	sol_store.n_frames = n;
	return 0;
}

/* The hooks are off and the lists empty, so that nobody takes or returns a frame. */
void sol_store_exit(void)
{
	kvfree(sol_store.cell);
	kvfree(sol_cell_states);
	vfree(sol_store.frame);
	vfree(sol_store.owned);
	sol_array_exit();
	sol_solvers_install(NULL, 0);
}
