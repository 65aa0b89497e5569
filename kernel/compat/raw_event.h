/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Raw events of a processor's counters. perf takes any number: where registers say which
 * ones a CPU counts, we ask them.
 */
#ifndef SOLOIST_COMPAT_RAW_EVENT_H
#define SOLOIST_COMPAT_RAW_EVENT_H

#ifdef CONFIG_ARM64
#include "arm64/raw_event.h"
#else
static inline bool sol_raw_event_counted(u64 config)
{
	return true;
}
#endif

#endif /* SOLOIST_COMPAT_RAW_EVENT_H */
