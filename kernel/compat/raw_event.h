/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a processor's counters count. perf takes any raw number: where registers say which
 * ones a CPU counts, we ask them.
 *
 *   SOL_TRAFFIC		the name of the event that counts traffic where nobody names one
 *   SOL_TRAFFIC_EVENT	that event, a struct sol_event
 *   sol_cpu_is_arm()	has it Arm's events?
 *   sol_offcore_reads()	the raw event of Intel's `offcore-reads`; 0: none is known
 *   sol_has_dram_fills()	has it AMD's `dram-fills`?
 *   sol_raw_event_counted()	does every CPU count the raw event? May sleep.
 */
#ifndef SOLOIST_COMPAT_RAW_EVENT_H
#define SOLOIST_COMPAT_RAW_EVENT_H

#ifdef CONFIG_ARM64
#include "arm64/raw_event.h"
#else
#include "x86/raw_event.h"
#endif

#endif /* SOLOIST_COMPAT_RAW_EVENT_H */
