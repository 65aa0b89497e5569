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
 * Locking: what mappings.c takes.
 */
#include <linux/cpuset.h>
#include <linux/mm.h>
#include <linux/sched/isolation.h>

#include "isolated.h"
#include "mappings.h"

bool sol_any_isolated(void)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (cpu_is_isolated(cpu))
			return true;
	return false;
}

static bool interrupts_isolated(struct vm_area_struct *vma, void *unused)
{
	int cpu;

	for_each_cpu(cpu, mm_cpumask(vma->vm_mm))
		if (cpu_is_isolated(cpu))
			return true;
	return false;
}

int sol_isolated_has(struct page *page, bool wait)
{
	return sol_mappings_any(page, wait, interrupts_isolated, NULL);
}
