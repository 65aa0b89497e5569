#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plain rmmod, with reservations and beside a real-time thread that spins: unloading waits
# until that lets its CPU go for a moment, but reservations are lifted before it waits. The
# groups go after supply, whose threads look them up.
set -u
. "$(dirname "$0")/../lib/trace.sh"
map=$(mktemp)
cat $root/map >"$map"
# All of this on a CPU that nobody stops.
taskset -pc 0 $$ >/dev/null

# First, for the kernel's threads of CPUs that stop or spin would be waited for. A kernel may
# lack a kind of waiting: Debian's of arm64 has no synchronize_rcu_tasks.
echo >$tracing/set_ftrace_filter
for call in synchronize_rcu synchronize_srcu synchronize_rcu_tasks rcu_barrier srcu_barrier \
	sol_guard_core_down sol_supply_exit sol_group_exit; do
	echo $call >>$tracing/set_ftrace_filter 2>/dev/null
done
echo function >$tracing/current_tracer
# Names of the module's functions go with it.
cat $tracing/trace_pipe >calls &
pipe=$!

# A CPU's clock counts idle time, too: 50 ms of each second.
taskset -c 2 sh -c 'while :; do sleep 0.02; done' &
worker=$!
printf "event $running\nperiod_us 1000000\nr_min 64000000000\nsharing none\nwrite_event none\nwrite_r_min 0\npeak 0\n" >$root/guard/settings
echo '3200000000 reclaim=0' >$root/guard/cpu2/bandwidth
n=0
until grep -q '^stopped 1' $root/guard/cpu2/stats || [ $n -gt 600 ]; do
	n=$((n + 1))
	sleep 0.1
done
check stopped "$([ $n -le 600 ] && echo 1)" "$(cat $root/guard/cpu2/stats)"

timeout 9 chrt -f 50 taskset -c 1 sh -c 'while :; do :; done' &
spinner=$!
sleep 0.5
rmmod soloist
status=$?
kill $worker $spinner 2>/dev/null
wait $worker $spinner 2>/dev/null
kill $pipe
wait $pipe 2>/dev/null
# While somebody reads it this would be refused.
echo nop >$tracing/current_tracer
echo >$tracing/set_ftrace_filter
seen=$(sed -n '/ rmmod-/s/.* \([a-z_]* <-[^ ]*\)$/\1/p' calls)
echo "# $(echo "$seen" | grep -vc ^sol_) waits"
check lifted-first "$([ "$(echo "$seen" | head -n 1 | grep -c sol_guard_core_down)" = 1 ] && echo 1)" \
	"$(echo "$seen" | head -n 5)"
parts=$(echo "$seen" | grep -o '^sol_[a-z]*_exit' | tr '\n' ' ')
check supply-before-groups "$([ "$parts" = 'sol_supply_exit sol_group_exit ' ] && echo 1)" "$parts"
check nothing-traced "$(grep -c '^nop$' $tracing/current_tracer)" "$(cat $tracing/current_tracer)"
check rmmod "$([ $status = 0 ] && echo 1)" "it failed"
insmod "$MODULE" && cat "$map" >$root/map
check load-again "$([ -e $root/guard/settings ] && echo 1)" "insmod"
rm -f "$map" calls
