/* SPDX-License-Identifier: GPL-2.0 */
/* Raw events, x86; see ../raw_event.h. */
#ifndef SOLOIST_COMPAT_X86_RAW_EVENT_H
#define SOLOIST_COMPAT_X86_RAW_EVENT_H

#include <linux/perf_event.h>
#include <asm/processor.h>

#include "offcore.h"

#define SOL_TRAFFIC		"LLC-misses"
#define SOL_TRAFFIC_EVENT	\
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 64 }

static inline bool sol_cpu_is_arm(void)
{
	return false;
}

static inline u32 sol_offcore_reads(void)
{
	const struct cpuinfo_x86 *cpu = &boot_cpu_data;

	return cpu->x86_vendor == X86_VENDOR_INTEL ?
	       sol_offcore_of(cpu->x86, cpu->x86_model) : 0;
}

/* Zen 3, 4 and 5. */
static inline bool sol_has_dram_fills(void)
{
	return boot_cpu_data.x86_vendor == X86_VENDOR_AMD &&
	       (boot_cpu_data.x86 == 0x19 || boot_cpu_data.x86 == 0x1a);
}

static inline bool sol_raw_event_counted(u64 config)
{
	return true;
}

#endif /* SOLOIST_COMPAT_X86_RAW_EVENT_H */
