// SPDX-License-Identifier: GPL-2.0
/*
 * Move: hooks on functions that move, swap or merge pages.
 *
 * Each has one entry. migrate_pages() knows the reason. If the kernel migrates for its
 * own good (compaction, NUMA balancing, demotion), coloured folios are taken off the
 * list before anything is unmapped. Migrations that the user or the hardware asks for
 * go on, and alloc_migration_target() answers with a frame of the owner's colours; if
 * there is none, the page leaves its colour and is counted.
 *
 * folio_alloc_swap() finds no swap entry for a coloured page, unless the page's own
 * memory cgroup is at its limit, or reclaim finds nothing else: then the OOM killer is
 * near, and isolation shall not kill. ksm_madvise() and ksm_enable_merge_any() succeed
 * without effect.
 *
 * Small pages of a coloured address space are not collapsed to a huge one (khugepaged,
 * MADV_COLLAPSE). That matters where huge pages are allowed (huge_ok); elsewhere the
 * flag of group/space.c keeps khugepaged away.
 *
 * None of these is on a hot path. docs/design/moves.md lists every mechanism.
 *
 * Locking: none of its own. Frames are looked up without a lock: the caller holds a
 * reference of the page, so that its owner can't change.
 */
#include <linux/memcontrol.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mman.h>
#include <linux/page_counter.h>
#include <linux/percpu.h>
#include <linux/swap.h>

#include "../compat/migrate.h"
#include "../compat/rows.h"
#include "../compat/trampoline.h"
#include "../frames/refill.h"
#include "../group/group.h"
#include "../hook/hook.h"
#include "../trace/trace.h"
#include "../hook/probe.h"
#include "keep.h"
#include "../fault/request.h"

/* How long coloured pages may be swapped when reclaim found nothing else. */
#define SWAP_JIFFIES	(5 * HZ)

/*
 * Reclaim begins at priority 12, looking at 1/4096 of a list at a time, and
 * doubles that until it has enough. At 2 a quarter of all was not.
 */
#define LAST_PRIORITY	2

/*
 * Pages. A memory cgroup that is so close to its limit reclaims for its own sake:
 * charges are made ahead in batches, on two CPUs at least.
 */
#define LIMIT_MARGIN	(2 * MEMCG_CHARGE_BATCH)

static DEFINE_PER_CPU(struct sol_move_stats, move_stats);
static unsigned long swap_until;
static bool swap_would_help;	/* a page was kept from swap since the last time */
static struct task_struct *kept_from;	/* the task; only to compare */

#define move_count(what, n) raw_cpu_add(move_stats.what, n)

void sol_move_sum(struct sol_move_stats *sum)
{
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct sol_move_stats *s = per_cpu_ptr(&move_stats, cpu);

		sum->kept += READ_ONCE(s->kept);
		sum->replaced += READ_ONCE(s->replaced);
		sum->moved += READ_ONCE(s->moved);
		sum->unswapped += READ_ONCE(s->unswapped);
		sum->swapped += READ_ONCE(s->swapped);
		sum->unmerged += READ_ONCE(s->unmerged);
		sum->uncollapsed += READ_ONCE(s->uncollapsed);
	}
}

/* Called from trampolines only. */
unsigned long sol_on_migrate_pages(struct list_head *from, void *get_new,
				   void *put_new, unsigned long private,
				   int mode, int reason);
unsigned long sol_on_migration_target(struct folio *src,
				      const struct sol_target *target);
unsigned long sol_on_mpol_target(struct folio *src, unsigned long private);
unsigned long sol_on_alloc_swap(struct folio *folio);
unsigned long sol_on_ksm_madvise(struct vm_area_struct *vma,
				 unsigned long start, unsigned long end,
				 int advice);
unsigned long sol_on_ksm_merge_any(struct mm_struct *mm);
unsigned long sol_on_collapse(void **huge, struct mm_struct *mm);

/* ---- Migration ---- */

static bool in_color(struct folio *folio)
{
	return !folio_test_large(folio) && sol_store_owns(&folio->page);
}

/* Group id of a folio that is in_color(). */
static u16 owner_of(struct folio *folio)
{
	return READ_ONCE(sol_frames_at(&sol_store, folio_pfn(folio))->link);
}

static void count_moved(u16 owner)
{
	sol_group_add_to(owner, moved, 1);
	move_count(moved, 1);
}

/*
 * Put @folio back to its LRU list. Demotion accounts for all folios that it isolated;
 * other callers account for those that they find on their list.
 */
static void put_back(struct folio *folio, int reason)
{
	list_del(&folio->lru);
	if (reason != MR_DEMOTION)
		node_stat_sub_folio(folio, NR_ISOLATED_ANON +
					   folio_is_file_lru(folio));
	folio_add_lru(folio);
	folio_put(folio);
}

/* Take coloured folios off the list. Return: how many. */
static unsigned int refuse(struct list_head *from, int reason)
{
	struct folio *folio, *next;
	unsigned int n = 0;

	list_for_each_entry_safe(folio, next, from, lru) {
		if (!in_color(folio))
			continue;
		put_back(folio, reason);
		move_count(kept, 1);
		n++;
	}
	return n;
}

/* Frames that are about to fail shall not come back to a list. */
static void forget(struct list_head *from)
{
	struct folio *folio;

	list_for_each_entry(folio, from, lru) {
		if (!in_color(folio))
			continue;
		trace_soloist_page_moved(owner_of(folio), folio_pfn(folio),
					 SOL_MOVED_BROKEN);
		count_moved(owner_of(folio));
		sol_store_forget(&folio->page);
	}
}

unsigned long sol_on_migrate_pages(struct list_head *from, void *get_new,
				   void *put_new, unsigned long private,
				   int mode, int reason)
{
	unsigned int kept = 0;

	if (sol_reason_refused(reason)) {
		/* One section over all: the LRU lists' lock sleeps on RT. */
		int users = sol_lists_begin();

		kept = refuse(from, reason);
		sol_lists_end(users);
	} else if (reason == MR_MEMORY_FAILURE) {
		forget(from);
	}
	/*
	 * An empty list is success to the original, and NUMA balancing would
	 * count the page as moved. It looks at what is left on the list, too.
	 */
	if (reason == MR_NUMA_MISPLACED && kept && list_empty(from))
		return kept;
	return SOL_PASS;
}

/*
 * A page in the owner's colours where @rq says, or SOL_PASS. A page of the same colour
 * is tried first, which works even if its group is gone, but not if the page must
 * become unmovable (long-term pins): the list of its cell may hold movable memory.
 */
static unsigned long target_in_color(struct folio *src, struct sol_request *rq)
{
	struct page *page = NULL;
	int users = sol_lists_begin();

	if (rq->nid == folio_nid(src) && rq->use == SOL_USE_MOVABLE)
		page = sol_refill_same_color(&src->page, rq->gfp);
	if (!page) {
		rq->id = owner_of(src);
		rq->modest = true;
		rq->target = true;
		page = sol_request_page(rq);
	}
	sol_lists_end(users);
	if (!page) {
		trace_soloist_page_moved(owner_of(src), folio_pfn(src),
					 SOL_MOVED_ASKED);
		count_moved(owner_of(src));
		return SOL_PASS;
	}
	move_count(replaced, 1);
	return (unsigned long)page;
}

/*
 * Offlining memory asks for other nodes than the page's own, if there are any
 * (nmask); colours are of a node, so stay on it: other blocks will do.
 */
unsigned long sol_on_migration_target(struct folio *src,
				      const struct sol_target *target)
{
	struct sol_request rq = { .gfp = target->gfp_mask };
	nodemask_t allowed;

	if (!in_color(src))
		return SOL_PASS;
	rq.nid = target->nid == NUMA_NO_NODE ? folio_nid(src) : target->nid;
	rq.use = target->gfp_mask & __GFP_MOVABLE ? SOL_USE_MOVABLE : SOL_USE_FIXED;
	allowed = nodemask_of_node(rq.nid);
	rq.allowed = &allowed;
	return target_in_color(src, &rq);
}

/*
 * mbind(): a page on the new policy's nodes, interleaved by the offset in the mapping.
 * Without colours there the page follows the policy alone. The original is not called
 * for that: before 6.7 it asks vma_alloc_folio(), where a group with policy `fail`
 * gets nothing.
 */
static unsigned long mpol_target(struct folio *src, unsigned long private)
{
	struct sol_request rq = {
		.gfp = GFP_HIGHUSER_MOVABLE | __GFP_RETRY_MAYFAIL,
		.nid = folio_nid(src),
	};
	const struct mempolicy *pol;
	unsigned long page;
	unsigned int turn;

	pol = in_color(src) ? sol_mpol_of_target(private, &turn) : NULL;
	if (!pol || nodes_empty(pol->nodes))
		return SOL_PASS;
	rq.allowed = &pol->nodes;
	if (pol->mode == MPOL_INTERLEAVE ||
	    !node_isset(rq.nid, pol->nodes)) {
		turn = (turn + src->index) % nodes_weight(pol->nodes);
		for (rq.nid = first_node(pol->nodes); turn; turn--)
			rq.nid = next_node(rq.nid, pol->nodes);
	}
	page = target_in_color(src, &rq);
	if (page != SOL_PASS)
		return page;
	return (unsigned long)__folio_alloc(rq.gfp | __GFP_COMP, 0, rq.nid,
					    (nodemask_t *)&pol->nodes);
}

/* Both parts may sleep: one section over both, see hook.h. */
unsigned long sol_on_mpol_target(struct folio *src, unsigned long private)
{
	int users = sol_lists_begin();
	unsigned long page = mpol_target(src, private);

	sol_lists_end(users);
	return page;
}

/* ---- Swap ---- */

/* Is the page's own memory cgroup, or one above it, at its limit? */
static bool at_own_limit(struct folio *folio)
{
#ifdef CONFIG_MEMCG
	struct page_counter *counter;
	struct mem_cgroup *memcg;
	bool at = false;

	rcu_read_lock();
	memcg = mem_cgroup_disabled() ? NULL : folio_memcg(folio);
	for (counter = memcg ? &memcg->memory : NULL; counter && !at;
	     counter = counter->parent)
		at = page_counter_read(counter) + LIMIT_MARGIN >=
		     min(READ_ONCE(counter->high), READ_ONCE(counter->max));
	rcu_read_unlock();
	return at;
#else
	return false;
#endif
}

unsigned long sol_on_alloc_swap(struct folio *folio)
{
	if (!in_color(folio))
		return SOL_PASS;
	if (time_before(jiffies, READ_ONCE(swap_until)) ||
	    at_own_limit(folio)) {
		move_count(swapped, 1);
		return SOL_PASS;
	}
	move_count(unswapped, 1);
	WRITE_ONCE(kept_from, current);
	WRITE_ONCE(swap_would_help, true);
	return SOL_NO_SWAP;
}

bool sol_move_allow_swap(void)
{
	if (!READ_ONCE(swap_would_help) || get_nr_swap_pages() <= 0)
		return false;
	WRITE_ONCE(swap_would_help, false);
	WRITE_ONCE(swap_until, jiffies + SWAP_JIFFIES);
	return true;
}

/*
 * mm_vmscan_lru_shrink_inactive: reclaim tried a batch. If it got nothing at a late
 * priority, and coloured pages were kept from swap, let them be swapped now: the many
 * rounds until the OOM killer cost seconds. kswapd and supply look at one node, and
 * nobody is killed where they find nothing: others may have plenty.
 */
static void probe_reclaim(void *data, int nid, unsigned long scanned,
			  unsigned long reclaimed, struct reclaim_stat *stat,
			  int priority, int file)
{
	if (priority <= LAST_PRIORITY && !reclaimed &&
	    !(current->flags & PF_KTHREAD) && READ_ONCE(kept_from) == current)
		sol_move_allow_swap();
}

/* ---- KSM ---- */

unsigned long sol_on_ksm_madvise(struct vm_area_struct *vma,
				 unsigned long start, unsigned long end,
				 int advice)
{
	if (advice != MADV_MERGEABLE || !sol_mm_stays(vma->vm_mm))
		return SOL_PASS;
	move_count(unmerged, 1);
	return 0;
}

unsigned long sol_on_ksm_merge_any(struct mm_struct *mm)
{
	if (!sol_mm_stays(mm))
		return SOL_PASS;
	move_count(unmerged, 1);
	return 0;
}

/* ---- Collapse ---- */

/*
 * alloc_charge_folio(): the new page would be stored to *@huge. The answer is a
 * scan_result: 0 is SCAN_FAIL, after which khugepaged goes on with the next block
 * instead of waiting for memory.
 */
unsigned long sol_on_collapse(void **huge, struct mm_struct *mm)
{
	if (!sol_mm_stays(mm))
		return SOL_PASS;
	*huge = NULL;
	move_count(uncollapsed, 1);
	return 0;
}

/* ---- Hooks ---- */

SOL_TRAMPOLINE(sol_tr_migrate_pages, sol_on_migrate_pages, SOL_IF_ANY);
SOL_TRAMPOLINE(sol_tr_migration_target, sol_on_migration_target, SOL_IF_ANY);
SOL_TRAMPOLINE(sol_tr_mpol_target, sol_on_mpol_target, SOL_IF_ANY);
SOL_TRAMPOLINE(sol_tr_alloc_swap, sol_on_alloc_swap, SOL_IF_ANY);
SOL_TRAMPOLINE(sol_tr_ksm_madvise, sol_on_ksm_madvise, SOL_IF_ANY);
SOL_TRAMPOLINE(sol_tr_ksm_merge_any, sol_on_ksm_merge_any, SOL_IF_ANY);
SOL_TRAMPOLINE(sol_tr_collapse, sol_on_collapse, SOL_IF_ANY);

static struct sol_hook move_hooks[] = {
	SOL_HOOK("migrate_pages", sol_tr_migrate_pages),
	SOL_HOOK("alloc_migration_target", sol_tr_migration_target),
	SOL_HOOK(SOL_MPOL_TARGET, sol_tr_mpol_target),
#ifdef CONFIG_SWAP
	SOL_HOOK("folio_alloc_swap", sol_tr_alloc_swap),
#endif
#ifdef CONFIG_KSM
	SOL_HOOK("ksm_madvise", sol_tr_ksm_madvise),
#ifdef SOL_KSM_MERGE_ANY
	SOL_HOOK("ksm_enable_merge_any", sol_tr_ksm_merge_any),
#endif
#endif
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	SOL_HOOK("alloc_charge_folio", sol_tr_collapse),
#endif
};

static struct sol_probe move_probe = {
	"mm_vmscan_lru_shrink_inactive", probe_reclaim
};

int sol_move_init(void)
{
	int err = sol_probes_add(&move_probe, 1);

	if (err)
		return err;
	err = sol_hooks_attach_present(move_hooks, ARRAY_SIZE(move_hooks));
	if (err)
		sol_probes_remove(&move_probe, 1);
	return err;
}

void sol_move_exit(void)
{
	sol_hooks_detach(move_hooks, ARRAY_SIZE(move_hooks));
	sol_probes_remove(&move_probe, 1);
}
