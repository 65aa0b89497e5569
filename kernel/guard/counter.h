/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters: what counts as memory traffic of a CPU, chosen by name, and an
 * interrupt when so much of it has happened.
 */
#ifndef SOLOIST_GUARD_COUNTER_H
#define SOLOIST_GUARD_COUNTER_H

#include <linux/perf_event.h>

#define SOL_EVENT_NAME		32
#define SOL_COUNT_NEVER		(1ull << 62)

/**
 * struct sol_event - an event that can be counted
 * @type, @config: as in struct perf_event_attr
 * @line: bytes that one of it moves, as a rule
 */
struct sol_event {
	u32 type;
	u64 config;
	u32 line;
};

/* Nanoseconds, that is, and no traffic. */
static inline bool sol_event_is_clock(const struct sol_event *event)
{
	return event->type == PERF_TYPE_SOFTWARE &&
	       (event->config == PERF_COUNT_SW_CPU_CLOCK ||
		event->config == PERF_COUNT_SW_TASK_CLOCK);
}

/*
 * Find an event by its name, or `rHEX` for a raw one as perf has it. 0, or an
 * errno and words: unknown, or not on this CPU. May sleep.
 */
int sol_event_find(const char *name, struct sol_event *event);

/* Why perf refused a counter, for a sentence. */
const char *sol_counter_why(long err);

/*
 * Count @event on @cpu, with the kernel's own or without; @overflow may be
 * called in an NMI. The counter is counting, or an ERR_PTR.
 */
struct perf_event *sol_counter_new(const struct sol_event *event, int cpu,
				   bool kernel,
				   perf_overflow_handler_t overflow,
				   void *context);
void sol_counter_free(struct perf_event *counter);

/* On the counter's CPU, interrupts off: does it count, and how far is it? */
bool sol_counter_works(const struct perf_event *counter);
u64 sol_counter_read(struct perf_event *counter);

/* The same: call back when it comes to @count, or at the next event if later. */
void sol_counter_arm(struct perf_event *counter, u64 count);

#endif /* SOLOIST_GUARD_COUNTER_H */
