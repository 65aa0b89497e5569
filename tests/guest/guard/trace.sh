#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A CPU that is stopped and goes on says so in the trace, and in its counts, which
# no setting takes back.
set -u
. "$(dirname "$0")/../lib/trace.sh"
events=$(ls $tracing/events/soloist 2>/dev/null | grep -c '^soloist_')
check events "$([ "$events" -ge 3 ] && echo 1)" "$events in $tracing/events/soloist"
taskset -c 1 sh -c 'while :; do echo >/dev/null; sleep 0.02; done' &
worker=$!
echo 1 >$tracing/events/soloist/enable
printf "event $running\nperiod_us 200000\nr_min 64000000000\nsharing none\nwrite_event none\nwrite_r_min 0\npeak 0\n" >$root/guard/settings
echo '6400000000 reclaim=0' >$root/guard/cpu1/bandwidth # 20 ms of 200
n=0
while ! grep -q 'soloist_cpu_go: cpu=1' $tracing/trace && [ $n -lt 300 ]; do
	sleep 0.05
	n=$((n + 1))
done
check stop "$(grep -q 'soloist_cpu_stop: cpu=1' $tracing/trace && echo 1)" "$(tail -n 3 $tracing/trace)"
check go "$(grep -q 'soloist_cpu_go: cpu=1 stood_ns=[1-9]' $tracing/trace && echo 1)" "$(tail -n 3 $tracing/trace)"
check others "$(grep -q 'soloist_cpu_[a-z]*: cpu=[023]' $tracing/trace || echo 1)" "$(tail -n 3 $tracing/trace)"
echo 0 >$tracing/events/soloist/enable
kill $worker
echo off >$root/guard/cpu1/bandwidth
counts() { grep -E '^(periods|stops|stopped_ns|used_bytes) ' $root/guard/cpu1/stats | tr '\n' ' '; }
before=$(counts)
echo 'r_min 0' >$root/guard/settings
check kept "$([ "$(counts)" = "$before" ] && echo "$before" | grep -q ' stops [1-9]' && echo 1)" "$(counts), before $before"
echo 'r_min 64000000000' >$root/guard/settings
check kept_on "$([ "$(counts)" = "$before" ] && echo 1)" "$(counts), before $before"
# Bytes that were counted stay so many, whatever a line is from now on.
echo 'line 4096' >$root/guard/settings
check kept_bytes "$(grep -q '^line 4096' $root/guard/settings && [ "$(counts)" = "$before" ] && echo 1)" "$(counts), before $before"
printf 'r_min 0\nevent page-faults\nperiod_us 1000\n' >$root/guard/settings
