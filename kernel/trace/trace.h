/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints, under events/soloist in tracefs: events that are too rare for a count
 * and too fast for a file. docs/reference/interface.md has them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM soloist

#if !defined(SOLOIST_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SOLOIST_TRACE_H

#include <linux/tracepoint.h>

#include "../group/group.h"
#include "rung.h"

/* A task of group @group got frame @pfn; @rung: enum sol_rung. */
TRACE_EVENT(soloist_fault,
	TP_PROTO(unsigned int group, unsigned long pfn, int rung),
	TP_ARGS(group, pfn, rung),
	TP_STRUCT__entry(
		__field(unsigned int, group)
		__field(unsigned long, pfn)
		__field(int, rung)
	),
	TP_fast_assign(
		__entry->group = group;
		__entry->pfn = pfn;
		__entry->rung = rung;
	),
	TP_printk("group=%u pfn=%#lx rung=%s", __entry->group, __entry->pfn,
		  __print_symbolic(__entry->rung,
				   { SOL_AT_HAND, "at_hand" },
				   { SOL_LISTED, "listed" },
				   { SOL_SUPPLIED, "supplied" }))
);

/* @got frames were listed in @cell, for group @group, in @ns nanoseconds. */
TRACE_EVENT(soloist_refill,
	TP_PROTO(unsigned int group, u32 cell, u32 got, u64 ns),
	TP_ARGS(group, cell, got, ns),
	TP_STRUCT__entry(
		__field(unsigned int, group)
		__field(u32, cell)
		__field(u32, got)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->group = group;
		__entry->cell = cell;
		__entry->got = got;
		__entry->ns = ns;
	),
	TP_printk("group=%u cell=%u got=%u ns=%llu", __entry->group,
		  __entry->cell, __entry->got, __entry->ns)
);

/*
 * Supply made a pass for group @group on node @node: @got frames were listed, @looked
 * frames in use were looked at.
 */
TRACE_EVENT(soloist_supply,
	TP_PROTO(unsigned int group, int node, u32 got, u32 looked),
	TP_ARGS(group, node, got, looked),
	TP_STRUCT__entry(
		__field(unsigned int, group)
		__field(int, node)
		__field(u32, got)
		__field(u32, looked)
	),
	TP_fast_assign(
		__entry->group = group;
		__entry->node = node;
		__entry->got = got;
		__entry->looked = looked;
	),
	TP_printk("group=%u node=%d got=%u looked=%u", __entry->group,
		  __entry->node, __entry->got, __entry->looked)
);

/* No rung had a page in colour; @exhaust: enum sol_exhaust. */
TRACE_EVENT(soloist_exhausted,
	TP_PROTO(unsigned int group, int node, int exhaust),
	TP_ARGS(group, node, exhaust),
	TP_STRUCT__entry(
		__field(unsigned int, group)
		__field(int, node)
		__field(int, exhaust)
	),
	TP_fast_assign(
		__entry->group = group;
		__entry->node = node;
		__entry->exhaust = exhaust;
	),
	TP_printk("group=%u node=%d exhaust=%s", __entry->group, __entry->node,
		  __print_symbolic(__entry->exhaust,
				   { SOL_FAIL, "fail" },
				   { SOL_GROW, "grow" },
				   { SOL_SPILL, "spill" }))
);

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

/* Group @group is removed; these are its last figures. */
TRACE_EVENT(soloist_group_removed,
	TP_PROTO(const struct sol_group *group,
		 const struct sol_group_stats *sum),
	TP_ARGS(group, sum),
	TP_STRUCT__entry(
		__field(unsigned int, group)
		__field(bool, implicit)
		__field(u64, exhausted)
		__field(u64, spilled)
		__field(u64, grown)
		__field(u64, moved)
		__array(char, name, SOL_GROUP_NAME)
	),
	TP_fast_assign(
		__entry->group = group->id;
		__entry->implicit = group->implicit;
		__entry->exhausted = sum->exhausted;
		__entry->spilled = sum->spilled;
		__entry->grown = sum->grown;
		__entry->moved = sum->moved;
		strscpy(__entry->name, group->name, SOL_GROUP_NAME);
	),
	TP_printk("group=%u implicit=%d exhausted=%llu spilled=%llu grown=%llu moved=%llu name=%s",
		  __entry->group, __entry->implicit, __entry->exhausted,
		  __entry->spilled, __entry->grown, __entry->moved,
		  __entry->name)
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
