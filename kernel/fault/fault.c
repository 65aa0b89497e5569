// SPDX-License-Identifier: GPL-2.0
/*
 * The fault path: seven hooks that put a task's memory in colour.
 *
 *   handle_mm_fault         a read fault on a private mapping becomes a write
 *                           fault, so that text and data of files are copied to
 *                           private, coloured pages, and no anonymous read gets
 *                           the shared zero page; a page that is mapped stays
 *   vma_alloc_folio         the page for a mapping is one of ours
 *   get_page_from_freelist  the page for a page table is one of ours
 *   free_unref_page_commit  a page of ours was freed and has passed all checks
 *   free_one_page           the same, when the CPU's own list was in use
 *   split_large_buddy       the same, where the compiler copied free_one_page() into its callers:
 *                           gcc does for PREEMPT_RT on arm64 (free_unref_folios() of 6.12)
 *   pagefault_out_of_memory a fault failed because there is no page in colour: the
 *                           task gets a signal
 *
 * Differs from the papers, which patch __alloc_pages and free_pages. From a module
 * that would also colour page cache and zram in the task's context, which is fatal
 * in reclaim, and it would have to repeat the kernel's checks at free.
 *
 * A task may fault on memory of another one: ptrace, /proc/PID/mem, and exec, which
 * builds the new address space before that is current. Then the group of the
 * address space decides. Memory policies and cpusets stay in force: colours choose
 * among the nodes that these allow.
 *
 * Locking: none of its own. C sides run in the caller's context: faults may sleep;
 * frees may not, and come from any context.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/pkeys.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/userfaultfd_k.h>
#include <asm/pgalloc.h>
#include <asm/syscall.h>

#include "../compat/alloc.h"
#include "../compat/nodes.h"
#include "../compat/trampoline.h"
#include "../frames/refill.h"
#include "../group/group.h"
#include "../hook/hook.h"
#include "../trace/trace.h"
#include "fault.h"
#include "mapped.h"
#include "request.h"
#include "text.h"

static noinline u16 remote_group(const struct mm_struct *mm)
{
#ifdef CONFIG_MEMCG
	/*
	 * An exec fills the new address space before it becomes ours. Some kernels have copied
	 * the old one's flags to it, and with them its group.
	 */
	if (rcu_access_pointer(mm->owner) == current)
		return group_id_of(current);
#endif
	return group_id_of_mm(mm);
}

/*
 * The group whose colours a page of @mm gets; 0: none. A thread has its own group or
 * none. A kernel thread that borrows an address space takes that one's group.
 */
static __always_inline u16 faulting_group(const struct mm_struct *mm)
{
	u16 id;

	if (unlikely(mm != current->mm))
		return remote_group(mm);
	id = group_id_of(current);
	if (unlikely(!id) && current->flags & PF_KTHREAD)
		return remote_group(mm);
	return id;
}

#define SOL_NOT_PRIVATE	(VM_SHARED | VM_MAYSHARE | VM_PFNMAP | VM_IO |	\
			 VM_MIXEDMAP | VM_HUGETLB | VM_UFFD_MISSING |	\
			 VM_UFFD_WP | VM_UFFD_MINOR |			\
			 ARCH_VM_PKEY_FLAGS)

/* handle_mm_fault, for reads. Return: the fault flags to go on with. */
unsigned long sol_fault_flags(struct vm_area_struct *vma, unsigned long addr,
			      unsigned long flags)
{
	u16 id = faulting_group(vma->vm_mm);

	if (!id ||
	    (vma->vm_flags & (SOL_NOT_PRIVATE | VM_MAYWRITE)) != VM_MAYWRITE ||
	    sol_is_mapped(vma->vm_mm, addr) || sol_text_stays(id, vma))
		return flags;
	return flags | FAULT_FLAG_WRITE;
}

/* ---- Nodes ---- */

/* The next one of @nodes for a task whose policy is to interleave. */
static int next_interleaved(const nodemask_t *nodes)
{
	int nid = next_node_in(current->il_prev, *nodes);

	if (nid < MAX_NUMNODES) {
		current->il_prev = nid;
		return nid;
	}
	return numa_node_id();
}

static void place_by_policy(struct sol_request *rq, struct mempolicy *pol)
{
	switch (pol->mode) {
	case MPOL_BIND:
		rq->allowed = &pol->nodes;
		break;
	case MPOL_PREFERRED:
	case MPOL_PREFERRED_MANY:
		if (!node_isset(rq->nid, pol->nodes) &&
		    !nodes_empty(pol->nodes))
			rq->nid = first_node(pol->nodes);
		break;
	case MPOL_DEFAULT:
	case MPOL_LOCAL:
		break;
	default:	/* interleaving, weighted or not */
		rq->nid = next_interleaved(&pol->nodes);
	}
}

/*
 * A policy that is shared through a file (private mappings of shmem) is not looked
 * up; the task's is used.
 */
static void place_for_vma(struct sol_request *rq,
			  const struct vm_area_struct *vma)
{
	struct mempolicy *pol = sol_policy_in(vma);

	rq->nid = numa_node_id();
	rq->cpuset = sol_task_mems(current);
	if (pol)
		place_by_policy(rq, pol);
}

/* ---- Pages for mappings ---- */

/* A user whose program ends by a signal finds the reason in the kernel log. */
static void say_exhausted(u16 id, int nid, u8 exhaust)
{
	char name[SOL_GROUP_NAME] = "";

	sol_with_group(g, id)
		strscpy(name, g->name, sizeof(name));
	pr_info_ratelimited("group %s: no free page in its colours for %s[%d] on node %d (exhaust %s)\n",
			    name, current->comm, task_pid_nr(current), nid,
			    exhaust == SOL_GROW ? "grow" : "fail");
}

/*
 * There is no page in colour, and the group's policy is to fail. The fault ends as
 * VM_FAULT_OOM. If it came from a system call, that fails. If it came from user
 * mode, the kernel would warn and retry it for ever: sol_fault_oom() sends a
 * signal.
 */
static unsigned long folio_fail(const struct sol_request *rq)
{
	struct pt_regs *regs = task_pt_regs(current);

	if (fatal_signal_pending(current))
		return 0;
	say_exhausted(rq->id, rq->nid, rq->exhaust);
	if (syscall_get_nr(current, regs) == -1 && user_mode(regs))
		set_bit(SOL_TASK_FAILED, &current->atomic_flags);
	return 0;
}

/* pagefault_out_of_memory. Return: 0: it was us; or go on with the original. */
unsigned long sol_fault_oom(void)
{
	int waiting;

	if (!test_and_clear_bit(SOL_TASK_FAILED, &current->atomic_flags))
		return SOL_PASS;
	waiting = srcu_read_lock(&sol_waiting);
	if (!fatal_signal_pending(current))
		force_sig(SIGBUS);
	srcu_read_unlock(&sol_waiting, waiting);
	return 0;
}

/* The nodes on which the group has colours and the policies allow a page. */
static bool nodes_of_group(struct sol_group *g, const struct sol_request *rq,
			   nodemask_t *nodes)
{
	const struct sol_cells *cells = rcu_dereference_sched(g->cells);
	int nid;

	nodes_clear(*nodes);
	for_each_online_node(nid)
		if (cells && nid < SOL_MAX_NODES &&
		    cells->first[nid] < cells->first[nid + 1] &&
		    sol_request_allows(rq, nid))
			node_set(nid, *nodes);
	return !nodes_empty(*nodes);
}

/* Is a block that the kernel chose in the group's colours? Its first frame tells. */
static bool block_in_color(u16 id, struct folio *folio)
{
	u32 cell = sol_map_cell(sol_store.map, folio_pfn(folio)), i, end;
	int nid = folio_nid(folio);
	bool found = false;

	sol_with_group(g, id) {
		const struct sol_cells *cells = rcu_dereference_sched(g->cells);

		if (!cells || nid >= SOL_MAX_NODES)
			continue;
		end = cells->first[nid + 1];
		for (i = cells->first[nid]; i < end && !found; i++)
			found = cells->cell[i] == cell;
	}
	return found;
}

/*
 * A huge page, or a part of one. The group gets one only if all colours of such a
 * block belong to it: it colours by controller, or by bits above a block. Then the
 * kernel's own allocator finds a block on the group's nodes, which is checked, for
 * it may be in other colours of the node. Otherwise the fault takes small pages.
 */
static noinline unsigned long folio_large(struct sol_request *rq, int order)
{
	bool whole = false, colors = false;
	struct folio *folio = NULL;
	nodemask_t nodes;
	int users;

	sol_with_group(g, rq->id) {
		if (!rcu_access_pointer(g->cells))
			continue;
		colors = true;
		whole = READ_ONCE(g->huge_ok) && order <= PMD_SHIFT - PAGE_SHIFT &&
			nodes_of_group(g, rq, &nodes);
		sol_group_add(g, large, 1);
	}
	if (!colors)
		return SOL_PASS;
	if (!whole)
		return 0;
	users = sol_lists_begin();
	if (!node_isset(rq->nid, nodes))
		rq->nid = first_node(nodes);
	folio = __folio_alloc(rq->gfp | __GFP_NORETRY, order, rq->nid, &nodes);
	if (folio && !block_in_color(rq->id, folio)) {
		folio_put(folio);
		folio = NULL;
	}
	sol_lists_end(users);
	return (unsigned long)folio;
}

/* No memory policy and no cpuset asks for another node than the near one. */
static __always_inline bool local_will_do(const struct vm_area_struct *vma)
{
	return !sol_policy_in(vma) && sol_task_may_use(current, numa_node_id());
}

/*
 * Must the page be zero? For an anonymous mapping the kernel says so. For a private
 * mapping of a file it asks for zero where it needs that. Any other page of such a
 * mapping is written as a whole before it is visible (a copy of a page, a read from
 * swap), so that clearing it for init_on_alloc would be wasted.
 */
static __always_inline gfp_t zeroing(gfp_t gfp, struct vm_area_struct *vma)
{
	bool whole = SOL_ZERO_IS_ASKED_FOR && !vma_is_anonymous(vma);

	if (gfp & __GFP_ZERO || whole || !want_init_on_alloc(gfp))
		return gfp;
	return gfp | __GFP_ZERO;
}

/* A folio that the per-CPU list does not have, or not near the CPU, or large. */
static noinline unsigned long folio_asked(u16 id, gfp_t gfp, int order,
					  struct vm_area_struct *vma)
{
	struct sol_request rq = { .id = id, .gfp = gfp, .nid = NUMA_NO_NODE };
	struct page *page;

	if (order || !local_will_do(vma)) {
		place_for_vma(&rq, vma);
		if (order)
			return folio_large(&rq, order);
		page = sol_request_page(&rq);
	} else {
		page = sol_request_slow(&rq);
	}
	if (page) {
		trace_soloist_fault(id, page_to_pfn(page), rq.rung);
		return (unsigned long)page;
	}
	return rq.exhaust == SOL_SPILL ? SOL_PASS : folio_fail(&rq);
}

/*
 * vma_alloc_folio. Return: a folio, NULL, or go on with the original. Most pages come
 * from the per-CPU list, without a struct sol_request.
 */
notrace unsigned long sol_fault_folio(gfp_t gfp, int order,
				      struct vm_area_struct *vma,
				      unsigned long addr)
{
	struct page *page;
	u16 id;

	if (sol_vma_is_pseudo(vma))
		return SOL_PASS;
	id = faulting_group(vma->vm_mm);
	if (!id)
		return SOL_PASS;
	if (unlikely(order))
		return folio_asked(id, gfp, order, vma);
	gfp = zeroing(gfp, vma);
	if (likely(local_will_do(vma))) {
		page = sol_cpu_list_get(id, NUMA_NO_NODE, gfp,
					SOL_USE_MOVABLE, true);
		if (likely(page)) {
			trace_soloist_fault(id, page_to_pfn(page), SOL_AT_HAND);
			return (unsigned long)page;
		}
	}
	return folio_asked(id, gfp, 0, vma);
}

/* ---- Page tables ---- */

/*
 * get_page_from_freelist. Return: our page, or go on with the original. Page tables
 * are recognised by their gfp mask alone. The caller charges them to the memory
 * cgroup. If there is none in colour the table gets an ordinary page, whatever the
 * group's policy is: a kernel allocation does not fail because of us.
 */
unsigned long sol_fault_table(gfp_t gfp, unsigned int order, int alloc_flags,
			      const struct alloc_context *ac)
{
	struct sol_request rq = {
		.gfp = gfp, .use = SOL_USE_TABLE, .modest = true,
		.allowed = ac->nodemask,
	};
	struct page *page;

	if ((gfp & ~(__GFP_HARDWALL | __GFP_COMP)) !=
	    (GFP_PGTABLE_USER & ~__GFP_HARDWALL) || order || !in_task())
		return SOL_PASS;
	rq.id = group_id_of(current);
	if (!rq.id || !ac->preferred_zoneref->zone)
		return SOL_PASS;
	rq.nid = zonelist_node_idx(ac->preferred_zoneref);
	page = sol_request_page(&rq);
	return page ? (unsigned long)page : SOL_PASS;
}

/* ---- Frees ---- */

/* free_unref_page_commit. Return: true: it is ours again; or go on. */
unsigned long sol_fault_freed(struct zone *zone, void *pcp, struct page *page,
			      int type, unsigned int order)
{
	if (order || !sol_cpu_list_put(page))
		return SOL_PASS;
	return true;	/* since 7.0: the list's lock is still held */
}

/*
 * free_one_page, or split_large_buddy, which it calls with the zone locked. The kernel comes here
 * when it can't have its per-CPU list at once, and for memory that is being unplugged, which we
 * let go. Compilers make a copy of the function that drops arguments: if zone, page and
 * frame number do not belong together, we were given other arguments.
 */
unsigned long sol_fault_freed_late(struct zone *zone, struct page *page,
				   unsigned long pfn, unsigned int order)
{
	if (order || zone != page_zone(page) || pfn != page_to_pfn(page))
		return SOL_PASS;
	if (!sol_block_usable(page)) {
		sol_store_forget(page);
		return SOL_PASS;
	}
	return sol_cpu_list_put(page) ? 0 : SOL_PASS;
}

/* ---- Hooks ---- */

/* For the trampolines. */
struct sol_owned sol_fault_owned;

#define SOL_IF_OURS(n)	SOL_IF_OWNED(n, sol_fault_owned)

SOL_TASK_OFFSETS(SOL_FLAG_ID_SHIFT, SOL_MM_ID_SHIFT);
SOL_WRITE_FLAGS(FAULT_FLAG_WRITE, FAULT_FLAG_UNSHARE);

/* pagefault_out_of_memory() */
SOL_TRAMPOLINE(sol_enter_oom, sol_fault_oom, SOL_IF_TASK);
/* handle_mm_fault(vma, address, flags, regs) */
SOL_TRAMPOLINE_ARG(sol_enter_fault, sol_fault_flags,
		   SOL_UNLESS_WRITE SOL_IF_TASK SOL_IF_MM(1) "4:\n",
		   3);
/* vma_alloc_folio(gfp, order, vma, addr, hugepage) */
SOL_TRAMPOLINE(sol_enter_folio, sol_fault_folio,
	       SOL_IF_TASK SOL_IF_MM_OF_FOLIO(3));
/* get_page_from_freelist(gfp, order, alloc_flags, ac): no page table is movable */
SOL_TRAMPOLINE(sol_enter_table, sol_fault_table,
	       SOL_UNLESS_MOVABLE SOL_IF_TASK "4:\n");
/* free_unref_page_commit(zone, pcp, page, migratetype, order) */
SOL_TRAMPOLINE(sol_enter_freed, sol_fault_freed, SOL_IF_OURS(3));
/* free_one_page(zone, page, pfn, order, ...), split_large_buddy(zone, page, pfn, order, ...) */
SOL_TRAMPOLINE(sol_enter_freed_late, sol_fault_freed_late, SOL_IF_OURS(2));

static struct sol_hook hooks[] = {
	SOL_HOOK("pagefault_out_of_memory", sol_enter_oom),
	SOL_HOOK("free_unref_page_commit", sol_enter_freed),
	SOL_HOOK("free_one_page", sol_enter_freed_late),
	SOL_HOOK("split_large_buddy", sol_enter_freed_late),
	SOL_HOOK("vma_alloc_folio", sol_enter_folio),
	SOL_HOOK("get_page_from_freelist", sol_enter_table),
	SOL_HOOK("handle_mm_fault", sol_enter_fault),
};

int sol_fault_init(void)
{
	sol_fault_owned = sol_owned_of(sol_store.owned, sol_store.n_frames);
	return sol_hooks_attach_present(hooks, ARRAY_SIZE(hooks));
}

void sol_fault_exit(void)
{
	sol_hooks_detach(hooks, ARRAY_SIZE(hooks));
}
