// SPDX-License-Identifier: GPL-2.0
/*
 * Fault path: the five hooks that put a task's memory in colour.
 *
 *   handle_mm_fault         a read fault on a private mapping becomes a write
 *                           fault, so that file text and data are copied into
 *                           private, coloured pages, and no anonymous read
 *                           gets the shared zero page
 *   vma_alloc_folio         the page for a mapping: one of ours
 *   get_page_from_freelist  page tables: one of ours
 *   free_unref_page_commit  a page of ours was freed, all checks behind it
 *   free_one_page           the same, where the CPU's own list was in use
 *
 * The papers patch __alloc_pages and free_pages. From outside that would
 * colour page cache and zram in the task's context too (fatal in reclaim, for
 * which all colours are alike), and it would have to redo the kernel's checks
 * at free.
 *
 * Who decides, when a task faults on another's memory (ptrace, /proc/PID/mem,
 * and exec, which builds the new address space before it is current)? The
 * group of the address space. mempolicies and cpusets stay in force: colours
 * choose among the nodes that these allow.
 *
 * Locking: none here. C sides run in the caller's context: faults may sleep,
 * frees may not, and may be in any context.
 */
#define pr_fmt(fmt) "soloist: " fmt

#include <linux/gfp.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/pkeys.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/userfaultfd_k.h>
#include <asm/pgalloc.h>
#include <asm/syscall.h>

#include "compat/alloc.h"
#include "compat/trampoline.h"
#include "fault.h"
#include "group.h"
#include "hook.h"
#include "magazine.h"
#include "member.h"
#include "parts.h"
#include "store.h"

static noinline u16 remote_group(const struct mm_struct *mm)
{
	u16 id = group_id_of_mm(mm);

#ifdef CONFIG_MEMCG
	/* An exec fills the new address space before it becomes ours. */
	if (!id && rcu_access_pointer(mm->owner) == current)
		id = group_id_of(current);
#endif
	return id;
}

/*
 * Whose colours a page of @mm takes. A thread has its own policy, which may be
 * none; a kernel thread that borrows an address space takes what that has.
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
			 VM_MIXEDMAP | VM_HUGETLB | __VM_UFFD_FLAGS |	\
			 ARCH_VM_PKEY_FLAGS)

/* handle_mm_fault, for reads: returns the fault flags to go on with. */
unsigned long sol_fault_flags(struct vm_area_struct *vma, unsigned long addr,
			      unsigned long flags)
{
	if (!faulting_group(vma->vm_mm) ||
	    (vma->vm_flags & (SOL_NOT_PRIVATE | VM_MAYWRITE)) != VM_MAYWRITE)
		return flags;
	return flags | FAULT_FLAG_WRITE;
}

/* ---- Where a page may be ---- */

/* Interleaving: the nodes of @nodes in turn, whoever asks. */
static int next_interleaved(const nodemask_t *nodes)
{
	static atomic_t turn;
	int n = nodes_weight(*nodes), nid;

	if (!n)
		return numa_node_id();
	n = (unsigned int)atomic_inc_return(&turn) % n;
	nid = first_node(*nodes);
	while (n--)
		nid = next_node(nid, *nodes);
	return nid;
}

static void place_by_policy(struct sol_place *place, struct mempolicy *pol)
{
	switch (pol->mode) {
	case MPOL_BIND:
		place->allowed = &pol->nodes;
		break;
	case MPOL_PREFERRED:
	case MPOL_PREFERRED_MANY:
		if (!node_isset(place->nid, pol->nodes) &&
		    !nodes_empty(pol->nodes))
			place->nid = first_node(pol->nodes);
		break;
	case MPOL_DEFAULT:
	case MPOL_LOCAL:
		break;
	default:	/* interleaving, weighted or not */
		place->nid = next_interleaved(&pol->nodes);
	}
}

/*
 * A policy shared through a file (private mappings of shmem) is not asked;
 * the task's is.
 */
static void place_for_vma(struct sol_place *place,
			  const struct vm_area_struct *vma)
{
	struct mempolicy *pol = vma->vm_policy ?: current->mempolicy;

	place->nid = numa_node_id();
	place->cpuset = &current->mems_allowed;
	if (pol)
		place_by_policy(place, pol);
}

/* ---- Pages for mappings ---- */

/* Whose program ends of a signal should find the reason in the log. */
static void say_exhausted(u16 id, int nid, u8 exhaust)
{
	char name[SOL_GROUP_NAME] = "";
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(id);
	if (g)
		strscpy(name, g->name, sizeof(name));
	preempt_enable();
	pr_info_ratelimited("group %s: no free page in its colours for %s[%d] on node %d (exhaust %s)\n",
			    name, current->comm, task_pid_nr(current), nid,
			    exhaust == SOL_GROW ? "grow" : "fail");
}

/*
 * No page in colour, and the group says `fail`. The fault ends as
 * VM_FAULT_OOM, and for a fault from user mode pagefault_out_of_memory()
 * would only retry it, for ever: the task gets a signal. A fault within a
 * system call makes that fail instead.
 */
static unsigned long folio_fail(u16 id, int nid, u8 exhaust)
{
	struct pt_regs *regs = task_pt_regs(current);

	if (fatal_signal_pending(current))
		return 0;
	say_exhausted(id, nid, exhaust);
	if (syscall_get_nr(current, regs) == -1 && user_mode(regs))
		force_sig(SIGBUS);
	return 0;
}

/* What the group does then; @seen: how many cells were found empty. */
static u8 note_exhausted(u16 id, u32 *seen)
{
	const struct sol_cells *cells;
	u8 exhaust = SOL_SPILL;
	struct sol_group *g;

	*seen = 0;
	preempt_disable();
	g = group_get_fast(id);
	cells = g ? rcu_dereference_sched(g->cells) : NULL;
	if (cells) {
		*seen = cells->n;
		exhaust = READ_ONCE(g->exhaust);
		sol_group_add(g, exhausted, 1);
	}
	preempt_enable();
	return exhaust;
}

static void note_spilled(u16 id)
{
	struct sol_group *g;

	preempt_disable();
	g = group_get_fast(id);
	if (g && rcu_access_pointer(g->cells))
		sol_group_add(g, spilled, 1);
	preempt_enable();
}

/* Another colour for the current task's group. */
static bool grow(u16 id, u32 seen)
{
	struct sol_group *g;
	bool grown = false;
	int waiting;

	waiting = srcu_read_lock(&sol_waiting);
	g = sol_member_group(current);
	if (g) {
		if (g->id == id)
			grown = !sol_group_grow(g, seen);
		sol_group_put(g);
	}
	srcu_read_unlock(&sol_waiting, waiting);
	return grown;
}

/* @hurry: a page out of colour is what the group would take. */
static bool group_colors(u16 id, bool *hurry)
{
	struct sol_group *g;
	bool colors;

	preempt_disable();
	g = group_get_fast(id);
	colors = g && rcu_access_pointer(g->cells);
	*hurry = colors && READ_ONCE(g->exhaust) == SOL_SPILL;
	preempt_enable();
	return colors;
}

static noinline unsigned long folio_slow(u16 id, struct sol_place *place,
					 gfp_t gfp)
{
	struct page *page;
	u8 exhaust;
	u32 seen;

	if (!group_colors(id, &place->hurry))
		return SOL_PASS;
	do {
		page = sol_store_get_filling(id, place, gfp);
		if (page)
			return (unsigned long)page;
		exhaust = note_exhausted(id, &seen);
	} while (exhaust == SOL_GROW && gfpflags_allow_blocking(gfp) &&
		 !fatal_signal_pending(current) && grow(id, seen));
	if (exhaust != SOL_SPILL)
		return folio_fail(id, place->nid, exhaust);
	note_spilled(id);
	return SOL_PASS;
}

/* The nodes on which the group has colours and the policies allow a page. */
static bool nodes_of_group(struct sol_group *g, const struct sol_place *place,
			   nodemask_t *nodes)
{
	const struct sol_cells *cells = rcu_dereference_sched(g->cells);
	int nid;

	nodes_clear(*nodes);
	for_each_online_node(nid)
		if (cells && nid < SOL_MAX_NODES &&
		    cells->first[nid] < cells->first[nid + 1] &&
		    sol_place_allows(place, nid))
			node_set(nid, *nodes);
	return !nodes_empty(*nodes);
}

/* Is a block of the kernel's own choice in colour? Its first frame tells. */
static bool block_in_color(u16 id, struct folio *folio)
{
	int nid = folio_nid(folio);
	const struct sol_cells *cells;
	u32 cell, i, end;
	struct sol_group *g;
	bool found = false;

	preempt_disable();
	g = group_get_fast(id);
	cells = g ? rcu_dereference_sched(g->cells) : NULL;
	cell = sol_map_cell(sol_store.map, folio_pfn(folio));
	if (cells && nid < SOL_MAX_NODES) {
		end = cells->first[nid + 1];
		for (i = cells->first[nid]; i < end && !found; i++)
			found = cells->cell[i] == cell;
	}
	preempt_enable();
	return found;
}

/*
 * A huge page, or a part of one: only if all colours of such a block belong
 * to the group (it colours by controller, or by bits above a block); then the
 * kernel's own allocator finds one on the group's nodes, which may be in
 * other colours of the node. Otherwise none: the fault takes small ones.
 */
static noinline unsigned long folio_large(u16 id, struct sol_place *place,
					  gfp_t gfp, int order)
{
	bool whole = false, colors = false;
	struct folio *folio = NULL;
	struct sol_group *g;
	nodemask_t nodes;
	int busy;

	preempt_disable();
	g = group_get_fast(id);
	if (g && rcu_access_pointer(g->cells)) {
		colors = true;
		whole = READ_ONCE(g->huge_ok) && order <= PMD_SHIFT - PAGE_SHIFT &&
			nodes_of_group(g, place, &nodes);
		sol_group_add(g, large, 1);
	}
	preempt_enable();
	if (!colors)
		return SOL_PASS;
	if (!whole)
		return 0;
	busy = sol_busy_begin();
	if (!node_isset(place->nid, nodes))
		place->nid = first_node(nodes);
	folio = __folio_alloc(gfp | __GFP_NORETRY, order, place->nid, &nodes);
	if (folio && !block_in_color(id, folio)) {
		folio_put(folio);
		folio = NULL;
	}
	sol_busy_end(busy);
	return (unsigned long)folio;
}

/* Nobody says otherwise than: near the CPU. */
static __always_inline bool local_will_do(const struct vm_area_struct *vma)
{
	return !vma->vm_policy && !current->mempolicy &&
	       node_isset(numa_node_id(), current->mems_allowed);
}

static noinline unsigned long folio_with_care(u16 id, gfp_t gfp, int order,
					      const struct vm_area_struct *vma)
{
	struct sol_place place = { 0 };
	struct page *page;

	place_for_vma(&place, vma);
	if (order)
		return folio_large(id, &place, gfp, order);
	page = sol_store_get(id, &place, gfp);
	if (page)
		return (unsigned long)page;
	return folio_slow(id, &place, gfp);
}

/* vma_alloc_folio: a folio, none, or go on with the original. */
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
	if (likely(!order && local_will_do(vma))) {
		page = sol_magazine_get(id, gfp);
		if (likely(page))
			return (unsigned long)page;
	}
	return folio_with_care(id, gfp, order, vma);
}

/* ---- Page tables ---- */

/*
 * get_page_from_freelist: our page, or go on with the original. Page tables
 * are known by their gfp mask alone. The caller charges them to the memcg.
 * One that is not to be had in colour is an ordinary one, whatever the group
 * says of exhaustion: a kernel allocation does not fail for us.
 */
unsigned long sol_fault_table(gfp_t gfp, unsigned int order, int alloc_flags,
			      const struct alloc_context *ac)
{
	struct sol_place place = { .table = true, .allowed = ac->nodemask };
	struct page *page;
	u32 seen;
	u16 id;

	if ((gfp & ~(__GFP_HARDWALL | __GFP_COMP)) !=
	    (GFP_PGTABLE_USER & ~__GFP_HARDWALL) || order || !in_task())
		return SOL_PASS;
	id = group_id_of(current);
	if (!id || !ac->preferred_zoneref->zone)
		return SOL_PASS;
	place.nid = zonelist_node_idx(ac->preferred_zoneref);
	page = sol_store_get(id, &place, gfp);
	if (likely(page))
		return (unsigned long)page;
	if (!group_colors(id, &place.hurry))
		return SOL_PASS;
	place.hurry = true;
	page = sol_store_get_filling(id, &place, gfp);
	if (page)
		return (unsigned long)page;
	note_exhausted(id, &seen);
	note_spilled(id);
	return SOL_PASS;
}

/* ---- Frees ---- */

/* free_unref_page_commit: ours again, or go on with the original. */
unsigned long sol_fault_freed(struct zone *zone, void *pcp, struct page *page,
			      int type, unsigned int order)
{
	if (order || !sol_store_put(page))
		return SOL_PASS;
	return 0;
}

/*
 * free_one_page: the kernel comes here when it can't have the per-CPU list at
 * once, and for memory that is being unplugged, which we let go.
 */
unsigned long sol_fault_freed_late(struct zone *zone, struct page *page,
				   unsigned long pfn, unsigned int order)
{
	if (order)
		return SOL_PASS;
	if (!sol_block_usable(page)) {
		sol_store_forget(page);
		return SOL_PASS;
	}
	return sol_store_put(page) ? 0 : SOL_PASS;
}

/* ---- Hooks ---- */

/*
 * A freed page, in @reg, is ours if its frame's tag says `used`. A struct page
 * has 64 bytes and a struct sol_frame 8.
 */
struct sol_frame *sol_fault_frames;
u64 sol_fault_n_frames;

#define SOL_IF_OURS(reg)					\
	"	movq	" reg ", %rax\n"				\
	"	subq	vmemmap_base(%rip), %rax\n"		\
	"	shrq	$6, %rax\n"				\
	"	cmpq	sol_fault_n_frames(%rip), %rax\n"	\
	"	jae	3f\n"					\
	"	movq	sol_fault_frames(%rip), %r10\n"		\
	"	testl	$SOL_TAG_USED_IMM, (%r10,%rax,8)\n"	\
	"	jnz	1f\n"					\
	"3:\n"

static void __used sol_fault_offsets(void)
{
	BUILD_BUG_ON(sizeof(struct page) != 64);
	BUILD_BUG_ON(sizeof(struct sol_frame) != 8);
	BUILD_BUG_ON(offsetof(struct sol_frame, tag));
	asm volatile(".set SOL_TAG_USED_IMM, %c0" : : "i" (SOL_TAG_USED));
	asm volatile(".set SOL_WRITE_IMM, %c0" : : "i"
		     (FAULT_FLAG_WRITE | FAULT_FLAG_UNSHARE));
}

/* A write fault need not become one: most faults end here. */
#define SOL_UNLESS_WRITE					\
	"	testl	$SOL_WRITE_IMM, %edx\n"			\
	"	jnz	4f\n"

/* handle_mm_fault(vma, address, flags, regs) */
SOL_TRAMPOLINE_ARG(sol_enter_fault, sol_fault_flags,
		   SOL_UNLESS_WRITE SOL_IF_TASK SOL_IF_MM("%rdi") "4:\n",
		   3);
/* vma_alloc_folio(gfp, order, vma, addr, hugepage) */
SOL_TRAMPOLINE(sol_enter_folio, sol_fault_folio,
	       SOL_IF_TASK SOL_IF_MM_OF_FOLIO("%rdx"));
/* get_page_from_freelist(gfp, order, alloc_flags, ac) */
SOL_TRAMPOLINE(sol_enter_table, sol_fault_table, SOL_IF_TASK);
/* free_unref_page_commit(zone, pcp, page, migratetype, order) */
SOL_TRAMPOLINE(sol_enter_freed, sol_fault_freed, SOL_IF_OURS("%rdx"));
/* free_one_page(zone, page, pfn, order, ...) */
SOL_TRAMPOLINE(sol_enter_freed_late, sol_fault_freed_late, SOL_IF_OURS("%rsi"));

static struct sol_hook hooks[] = {
	SOL_HOOK("free_unref_page_commit", NULL, sol_enter_freed),
	SOL_HOOK("free_one_page", "free_one_page.constprop.0",
		 sol_enter_freed_late),
	SOL_HOOK("vma_alloc_folio", "vma_alloc_folio_noprof", sol_enter_folio),
	SOL_HOOK("get_page_from_freelist", NULL, sol_enter_table),
	SOL_HOOK("handle_mm_fault", NULL, sol_enter_fault),
};

int sol_fault_init(void)
{
	sol_fault_frames = sol_store.frame;
	sol_fault_n_frames = sol_store.n_frames;
	return sol_hooks_attach(hooks, ARRAY_SIZE(hooks));
}

void sol_fault_exit(void)
{
	sol_hooks_detach(hooks, ARRAY_SIZE(hooks));
}
