/* SPDX-License-Identifier: GPL-2.0 */
/* Raw events, arm64; see ../raw_event.h. */
#ifndef SOLOIST_COMPAT_ARM64_RAW_EVENT_H
#define SOLOIST_COMPAT_ARM64_RAW_EVENT_H

#include <linux/bitfield.h>
#include <linux/cpumask.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <asm/sysreg.h>

/*
 * BUS_ACCESS. What perf calls cache-misses are refills of the first level here
 * (drivers/perf/arm_pmuv3.c).
 */
#define SOL_TRAFFIC		"bus-accesses"
#define SOL_TRAFFIC_EVENT	{ PERF_TYPE_RAW, 0x19, 64 }

static inline bool sol_cpu_is_arm(void)
{
	return true;
}

static inline u32 sol_offcore_reads(void)
{
	return 0;
}

static inline bool sol_has_dram_fills(void)
{
	return false;
}

struct sol_raw_event {
	u64 config;
	bool counted;
};

/*
 * Of events 0 to 0x3f and 0x4000 to 0x403f each has a bit in one of two registers, the
 * second kind in their upper halves. Nothing says which of the others a CPU counts.
 */
static inline void sol_raw_event_look(void *data)
{
	struct sol_raw_event *event = data;
	unsigned int bit = (event->config & 0x1f) + (event->config & 0x4000 ? 32 : 0);
	unsigned int pmu = FIELD_GET(ID_AA64DFR0_EL1_PMUVer_MASK,
				     read_sysreg(id_aa64dfr0_el1));
	u64 said;

	/* Counters of the maker's own kind lack these registers. */
	if (!pmu || pmu == ID_AA64DFR0_EL1_PMUVer_IMP_DEF)
		return;
	said = event->config & 0x20 ? read_sysreg_s(SYS_PMCEID1_EL0) :
				      read_sysreg_s(SYS_PMCEID0_EL0);
	if (!(said & BIT_ULL(bit)))
		event->counted = false;
}

static inline bool sol_raw_event_counted(u64 config)
{
	struct sol_raw_event event = { .config = config, .counted = true };
	int cpu;

	if (config > U16_MAX)
		return false;
	if (config & ~0x403fULL)
		return true;
	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, sol_raw_event_look, &event, 1);
	return event.counted;
}

#endif /* SOLOIST_COMPAT_ARM64_RAW_EVENT_H */
