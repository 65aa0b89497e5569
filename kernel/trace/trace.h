/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints, under events/soloist in tracefs: what happens too seldom for a
 * count and too fast for a file. docs/interface.md has them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM soloist

#if !defined(SOLOIST_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SOLOIST_TRACE_H

#include <linux/tracepoint.h>

#define SOL_MOVED_ASKED		0	/* migrated to where its group has no page */
#define SOL_MOVED_BROKEN	1	/* its frame fails */

/* A page of group @group leaves its colour. */
TRACE_EVENT(soloist_page_moved,
	TP_PROTO(unsigned int group, unsigned long pfn, int why),
	TP_ARGS(group, pfn, why),
	TP_STRUCT__entry(
		__field(unsigned int, group)
		__field(unsigned long, pfn)
		__field(int, why)
	),
	TP_fast_assign(
		__entry->group = group;
		__entry->pfn = pfn;
		__entry->why = why;
	),
	TP_printk("group=%u pfn=%#lx why=%s", __entry->group, __entry->pfn,
		  __print_symbolic(__entry->why,
				   { SOL_MOVED_ASKED, "asked" },
				   { SOL_MOVED_BROKEN, "broken" }))
);

/* CPU @cpu stands still: its budget is used up. */
TRACE_EVENT(soloist_cpu_stop,
	TP_PROTO(int cpu),
	TP_ARGS(cpu),
	TP_STRUCT__entry(
		__field(int, cpu)
	),
	TP_fast_assign(
		__entry->cpu = cpu;
	),
	TP_printk("cpu=%d", __entry->cpu)
);

/* It goes on; @stood: nanoseconds that it stood. */
TRACE_EVENT(soloist_cpu_go,
	TP_PROTO(int cpu, u64 stood),
	TP_ARGS(cpu, stood),
	TP_STRUCT__entry(
		__field(int, cpu)
		__field(u64, stood)
	),
	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->stood = stood;
	),
	TP_printk("cpu=%d stood_ns=%llu", __entry->cpu, __entry->stood)
);

#endif /* SOLOIST_TRACE_H */

/* Found by -I in kernel/Kbuild. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
