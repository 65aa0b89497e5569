// SPDX-License-Identifier: GPL-2.0
/*
 * Counters: perf events of the kernel, one for each CPU and kind of traffic.
 *
 * A counter is pinned and never sampled into a buffer. We use its count, and a call
 * when it comes to a limit. The limit changes with every period and every overflow,
 * in interrupts. perf_event_period() sleeps, so its work is done here: stop the event,
 * set what is left, start it again. Three kinds of events need that in three ways:
 *   - of a PMU: period_left is what is left; start reads it;
 *   - clocks: the same, but start sets up an hrtimer;
 *   - other software events: period_left is minus what is left. Every event looks at
 *     it, so that there is nothing to stop.
 *
 * perf slows down events that interrupt too often. Ours may interrupt often: they are
 * armed again by a decision, not by time. So their count of interrupts is reset.
 *
 * Locking: none. Reading and arming happen on the counter's CPU with interrupts off,
 * as perf's own do. perf's locks serialise making and freeing.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "counter.h"
#include "../command/status.h"
#include "../compat/raw_event.h"

#define CACHE_EVENT(cache, op, result)				\
	(PERF_COUNT_HW_CACHE_##cache |				\
	 PERF_COUNT_HW_CACHE_OP_##op << 8 |			\
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

enum maker { ANY, INTEL, AMD, ARM, NOT_ARM };

static const struct {
	const char *name;
	enum maker of;
	struct sol_event event;
} known[] = {
	/*
	 * Of Arm's processors perf counts refills of the first level by this name; of AMD's
	 * misses of the second.
	 */
	{ "LLC-misses", NOT_ARM,
	  { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 64 } },
	{ "LLC-load-misses", ANY,
	  { PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, READ, MISS), 64 } },
	{ "LLC-store-misses", ANY,
	  { PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, WRITE, MISS), 64 } },
	/* Its number is the model's. */
	{ "offcore-reads", INTEL, { PERF_TYPE_RAW, 0, 64 } },
	/* ls_any_fills_from_sys from DRAM (or I/O) of any node: L1's prefetches, too. */
	{ "dram-fills", AMD, { PERF_TYPE_RAW, 0x4844, 64 } },
	/* Architectural events of Armv8, D11.11. */
	{ "bus-accesses", ARM, { PERF_TYPE_RAW, 0x19, 64 } },
	{ "bus-reads", ARM, { PERF_TYPE_RAW, 0x60, 64 } },
	{ "bus-writes", ARM, { PERF_TYPE_RAW, 0x61, 64 } },
	{ "L2-refills", ARM, { PERF_TYPE_RAW, 0x17, 64 } },
	{ "L2-writebacks", ARM, { PERF_TYPE_RAW, 0x18, 64 } },
	/* The same and others by Arm's own names. */
	{ "L2D_CACHE_REFILL", ARM, { PERF_TYPE_RAW, 0x17, 64 } },
	{ "L3D_CACHE_REFILL", ARM, { PERF_TYPE_RAW, 0x2a, 64 } },
	{ "LL_CACHE_MISS_RD", ARM, { PERF_TYPE_RAW, 0x37, 64 } },
	{ "BUS_ACCESS", ARM, { PERF_TYPE_RAW, 0x19, 64 } },
	{ "MEM_ACCESS_WR", ARM, { PERF_TYPE_RAW, 0x67, 64 } },
	{ "cpu-cycles", ANY,
	  { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 64 } },
	{ "page-faults", ANY,
	  { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 4096 } },
	{ "context-switches", ANY,
	  { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 64 } },
	{ "cpu-clock", ANY,
	  { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 64 } },
};

static bool made_by(enum maker maker)
{
	switch (maker) {
	case INTEL:
		return sol_offcore_reads();
	case AMD:
		return sol_has_dram_fills();
	case ARM:
		return sol_cpu_is_arm();
	case NOT_ARM:
		return !sol_cpu_is_arm();
	default:
		return true;
	}
}

static int find_name(const char *name, struct sol_event *event)
{
	size_t i;

	if (name[0] == 'r' && !kstrtou64(name + 1, 16, &event->config)) {
		event->type = PERF_TYPE_RAW;
		event->line = 64;
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, name))
			continue;
		if (!made_by(known[i].of))
			return sol_deny(-EOPNOTSUPP,
					"event %s: this processor is not known to have it; " SOL_TRAFFIC " counts its traffic",
					name);
		*event = known[i].event;
		if (known[i].of == INTEL)
			event->config = sol_offcore_reads();
		return 0;
	}
	return sol_deny(-EINVAL,
			"event '%.31s' is unknown; for instance " SOL_TRAFFIC ", page-faults, or rHEX for a raw one",
			name);
}

const char *sol_counter_why(long err)
{
	switch (err) {
	case -ENOMEM:
		return "no memory for its counter";
	case -EBUSY:
	case -EAGAIN:
	case -ENOSPC:
		return "all of the CPU's counters for it are taken";
	default:
		return "this CPU or this kernel can't count it (most virtual machines have no counters; page-faults needs none)";
	}
}

static void never(struct perf_event *counter, struct perf_sample_data *data,
		  struct pt_regs *regs)
{
}

int sol_event_find(const char *name, struct sol_event *event)
{
	return find_name(name, event) ?: sol_event_check(name, event);
}

int sol_event_check(const char *name, const struct sol_event *event)
{
	struct perf_event *counter;
	int err;

	/* Any CPU will do; pinning to the boot CPU avoids those that sleep. */
	counter = sol_counter_new(event, cpumask_first(cpu_online_mask), true,
				  never, NULL);
	err = PTR_ERR_OR_ZERO(counter);
	if (!err) {
		sol_counter_free(counter);
		if (event->type == PERF_TYPE_RAW &&
		    !sol_raw_event_counted(event->config))
			err = -EOPNOTSUPP;
	}
	return err ? sol_deny(err, "event %s: %s", name, sol_counter_why(err)) : 0;
}

struct perf_event *sol_counter_new(const struct sol_event *event, int cpu,
				   bool kernel,
				   perf_overflow_handler_t overflow,
				   void *context)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.config = event->config,
		.size = sizeof(attr),
		.sample_period = SOL_COUNT_NEVER,
		.pinned = 1,
		.exclude_kernel = !kernel,
	};

	return perf_event_create_kernel_counter(&attr, cpu, NULL, overflow,
						context);
}

void sol_counter_free(struct perf_event *counter)
{
	if (!IS_ERR_OR_NULL(counter))
		perf_event_release_kernel(counter);
}

bool sol_counter_works(const struct perf_event *counter)
{
	return READ_ONCE(counter->state) == PERF_EVENT_STATE_ACTIVE;
}

u64 sol_counter_read(struct perf_event *counter)
{
	if (sol_counter_works(counter))
		counter->pmu->read(counter);
	return local64_read(&counter->count);
}

static bool is_clock(const struct perf_event *counter)
{
	return counter->attr.config == PERF_COUNT_SW_CPU_CLOCK ||
	       counter->attr.config == PERF_COUNT_SW_TASK_CLOCK;
}

static u64 left_to(struct perf_event *counter, u64 count)
{
	u64 now = local64_read(&counter->count);

	return count > now ? count - now : 1;
}

void sol_counter_arm(struct perf_event *counter, u64 count)
{
	struct hw_perf_event *hw = &counter->hw;
	u64 left;

	if (!sol_counter_works(counter))
		return;
	hw->interrupts = 0;
	if (counter->attr.type == PERF_TYPE_SOFTWARE && !is_clock(counter)) {
		left = left_to(counter, count);
		hw->sample_period = left;
		hw->last_period = left;
		local64_set(&hw->period_left, -(s64)left);
		return;
	}
	counter->pmu->stop(counter, PERF_EF_UPDATE);
	left = left_to(counter, count);
	hw->sample_period = left;
	hw->last_period = left;
	local64_set(&hw->period_left, left);
	counter->pmu->start(counter, PERF_EF_RELOAD);
}
