// SPDX-License-Identifier: GPL-2.0
/*
 * Isolated CPUs: a page that moves is unmapped first, which interrupts all CPUs whose
 * TLB may know it. A CPU that somebody isolated (isolcpus=, nohz_full=, an isolated
 * partition of a cpuset) shall not be interrupted unless asked for.
 *
 * All address spaces that may map the page are asked on which CPUs they were loaded of
 * late. So a library's page stays if a task on an isolated CPU has that library. Where
 * the processor tells other TLBs itself (arm64), the kernel notes no CPUs, interrupts
 * none, and no page stays.
 *
 * Locking: the page's lock, if nobody has it, and inside what a walk over its mappings
 * takes.
 */
#include <linux/cpuset.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/sched/isolation.h>

#include "../hook/hook.h"
#include "isolated.h"

typedef void rmap_walk_fn(struct folio *folio, struct rmap_walk_control *rwc);
DEFINE_STATIC_CALL_NULL(sol_isolated_walk, rmap_walk_fn);
static bool can_walk;

bool sol_any_isolated(void)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (cpu_is_isolated(cpu))
			return true;
	return false;
}

static bool one_mapping(struct folio *folio, struct vm_area_struct *vma,
			unsigned long addr, void *arg)
{
	bool *found = arg;
	int cpu;

	for_each_cpu(cpu, mm_cpumask(vma->vm_mm))
		*found |= cpu_is_isolated(cpu);
	return !*found;
}

enum sol_stay sol_isolated_check(struct page *page)
{
	struct folio *folio = page_folio(page);
	bool found = false;
	struct rmap_walk_control walk = {
		.arg = &found,
		.rmap_one = one_mapping,
	};

	if (!folio_mapped(folio))
		return SOL_N_STAYS;
	if (!can_walk)
		return SOL_STAYS_ISOLATED;
	if (!folio_trylock(folio))
		return SOL_STAYS_BUSY;
	/* Without the lock it may have been unmapped, or split. */
	if (page_folio(page) == folio && folio_mapped(folio) &&
	    (folio_test_anon(folio) || folio->mapping))
		static_call(sol_isolated_walk)(folio, &walk);
	folio_unlock(folio);
	return found ? SOL_STAYS_ISOLATED : SOL_N_STAYS;
}

void sol_isolated_init(void)
{
	can_walk = !sol_bind(sol_isolated_walk, "rmap_walk");
}
