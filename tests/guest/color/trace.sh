#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Coloured faults, refills, passes of supply and exhaustion are in the trace, and how
# long faults and refills took in the group's `times`.
set -u
. "$(dirname "$0")/../lib/trace.sh"
# traced NAME PATTERN
traced() {
	check "$1" "$(grep -qE "$2" trace && echo 1)" "$(grep soloist trace | tail -n 3)"
}
# total KIND: of its counts in `times`
total() {
	awk -v kind="$1" '$1 ~ "^" kind "_" { n += $2 } END { print n + 0 }' $g/times
}

g=$root/groups/traced
mkdir $g
echo 0 >$g/bank_set
echo spill >$g/exhaust
id=$(cat $g/id)
# More than its colour holds: down to the last rung.
mib=$(awk '/^capacity/ { print int($2 / 1048576) + 16 }' $g/stats)
echo 40000 >$tracing/buffer_size_kb
echo >$tracing/trace
for event in fault refill supply exhausted; do
	echo 1 >$tracing/events/soloist/soloist_$event/enable
done
sh -c "echo 0 >$g/tasks && head -c ${mib}m /dev/zero | tail -c ${mib}m >/dev/null"
for event in fault refill supply exhausted; do
	echo 0 >$tracing/events/soloist/soloist_$event/enable
done
grep soloist_ $tracing/trace >trace
traced at-hand "soloist_fault: group=$id pfn=0x[0-9a-f]+ rung=at_hand\$"
traced listed "soloist_fault: group=$id pfn=0x[0-9a-f]+ rung=(listed|supplied)\$"
traced refill "soloist_refill: group=$id cell=[0-9]+ got=[1-9][0-9]* ns=[1-9]"
traced supply "soloist_supply: group=$id node=[0-9]+ got=[0-9]+ looked=[0-9]+\$"
traced exhausted "soloist_exhausted: group=$id node=[0-9]+ exhaust=spill\$"
check others "$(grep -vq "group=$id " trace || echo 1)" "$(grep -v "group=$id " trace | tail -n 1)"

refills=$(awk '/^refills/ { print $2 }' $g/stats)
check refill-times "$([ "$(total refill)" = "$refills" ] && [ "$refills" -gt 0 ] && echo 1)" "$(total refill) of $refills"
check fault-times "$([ "$(total fault)" -ge "$(grep -c 'rung=[l-z]' trace)" ] && [ "$(total fault)" -gt 0 ] && echo 1)" "$(cat $g/times)"
check times-typed "$(grep -vqE '^(fault|refill)_(lt_[0-9]+|more) [0-9]+$' $g/times || echo 1)" "$(cat $g/times)"
echo 1408 >$tracing/buffer_size_kb
rmdir $g
rm trace

# A fault that grows its group, beside a set that nobody owns and that has pages in use,
# leaves the lists of CPUs to supply.
mkdir $root/groups/left $g
echo 1 >$root/groups/left/bank_set
sh -c "echo 0 >$root/groups/left/tasks && exec sleep 1000" &
left=$!
until grep -qs sleep /proc/$left/comm; do sleep 0.1; done
rmdir $root/groups/left
echo 0 >$g/bank_set
echo grow >$g/exhaust
echo sol_cpu_lists_flush >$tracing/set_ftrace_filter
echo function >$tracing/current_tracer
sh -c "echo 0 >$g/tasks && head -c ${mib}m /dev/zero | tail -c ${mib}m >/dev/null"
grep sol_cpu_lists_flush $tracing/trace >trace
echo nop >$tracing/current_tracer
echo >$tracing/set_ftrace_filter
kill $left
check grown "$([ "$(awk '/^grown/ { print $2 }' $g/stats)" -gt 0 ] && echo 1)" "$(cat $g/stats)"
check supply-flushes "$(grep -q soloist/ trace && echo 1)" "nobody did"
check growing-does-not "$(grep -qv soloist/ trace || echo 1)" "$(grep -v soloist/ trace | head -n 2)"
rmdir $g
rm trace
