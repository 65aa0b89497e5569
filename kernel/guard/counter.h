/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters: events that stand for a CPU's memory traffic, chosen by name, and a call
 * when a number of them has happened.
 */
#ifndef SOLOIST_GUARD_COUNTER_H
#define SOLOIST_GUARD_COUNTER_H

#include <linux/perf_event.h>

#define SOL_EVENT_NAME		32
#define SOL_COUNT_NEVER		(1ull << 62)

/**
 * struct sol_event - an event that can be counted
 * @type: as in struct perf_event_attr
 * @config: as in struct perf_event_attr
 * @line: bytes that one event usually moves
 */
struct sol_event {
	u32 type;
	u64 config;
	u32 line;
};

/* Does @event count nanoseconds, and no traffic? */
static inline bool sol_event_is_clock(const struct sol_event *event)
{
	return event->type == PERF_TYPE_SOFTWARE &&
	       (event->config == PERF_COUNT_SW_CPU_CLOCK ||
		event->config == PERF_COUNT_SW_TASK_CLOCK);
}

/**
 * sol_event_find() - find an event
 * @name: its name, or `rHEX` for a raw event as perf has it
 * @event: becomes the event
 *
 * May sleep. Return: 0; -EINVAL: unknown; another errno: this CPU can't count it.
 * last_cmd_status says why.
 */
int sol_event_find(const char *name, struct sol_event *event);

/**
 * sol_event_check() - can this machine count an event?
 * @name: its name
 * @event: the event
 *
 * May sleep. Return: 0; an errno: it can't, and last_cmd_status says why.
 */
int sol_event_check(const char *name, const struct sol_event *event);

/* Why perf refused a counter with @err: part of a sentence. */
const char *sol_counter_why(long err);

/**
 * sol_counter_new() - begin to count
 * @event: what to count
 * @cpu: where
 * @kernel: events of the kernel count too
 * @overflow: called at the limit, perhaps in an NMI
 * @context: for @overflow
 *
 * May sleep. Return: the counter, or an ERR_PTR.
 */
struct perf_event *sol_counter_new(const struct sol_event *event, int cpu,
				   bool kernel,
				   perf_overflow_handler_t overflow,
				   void *context);
void sol_counter_free(struct perf_event *counter);

/* Does it count, and its count. On the counter's CPU, interrupts off. */
bool sol_counter_works(const struct perf_event *counter);
u64 sol_counter_read(struct perf_event *counter);

/* Call at @count, or at the next event if that is past. As above. */
void sol_counter_arm(struct perf_event *counter, u64 count);

#endif /* SOLOIST_GUARD_COUNTER_H */
