#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The module goes while a CPU is stopped: the CPU is let go.
set -u
. "$(dirname "$0")/../lib/trace.sh"
map=$(mktemp)
cat $root/map >"$map"

# Does little, since a guest whose CPUs are all busy is slow; a CPU's clock counts
# idle time too.
taskset -c 1 sh -c 'while :; do echo >>turns; sleep 0.02; done' &
worker=$!
trap 'kill $worker' EXIT
turns() { wc -c <turns; }

# until_ COMMAND: two minutes at most, for the host may be busy.
until_() {
	n=0
	while ! eval "$1" && [ $n -lt 6000 ]; do
		sleep 0.02
		n=$((n + 1))
	done
}
# A kernel without schedutil (arm64's cloud) can only `stop user`.
refused() {
	if grep -q SCHEDUTIL $root/last_cmd_status; then
		echo "skip $1: $(cat $root/last_cmd_status)"
	else
		check $1-limited 0 "$(cat $root/last_cmd_status)"
	fi
}
# stop_and_unload WHERE
stop_and_unload() {
	printf "event $running\nperiod_us 1000000\nr_min 64000000000\nsharing none\nwrite_event none\nwrite_r_min 0\npeak 0\nstop %s\n" "$1" >$root/guard/settings
	# 50 ms of each second.
	echo '3200000000 reclaim=0' 2>/dev/null >$root/guard/cpu1/bandwidth || {
		refused "$1"
		return
	}
	until_ 'seen=$(cat $root/guard/cpu1/stats); echo "$seen" | grep -q "^stopped 1"'
	check $1-stopped "$(echo "$seen" | grep -c '^stopped 1')" "$seen"
	rmmod soloist
	check $1-rmmod "$([ $? = 0 ] && echo 1)" "status"
	before=$(turns)
	until_ 'after=$(turns); [ "$after" -gt "$before" ]'
	check $1-runs "$([ "$after" -gt "$before" ] && echo 1)" "$before turns before, $after after"
	check $1-no-thread "$([ "$(ps ax | grep -c '[s]oloist/1')" = 0 ] && echo 1)" "$(ps ax | grep '[s]oloist/')"
	insmod "$MODULE" && cat "$map" >$root/map
	check $1-load-again "$([ -e $root/guard/settings ] && echo 1)" "insmod"
}
stop_and_unload anywhere
stop_and_unload user
# What a fresh module counts nobody has tried: no counter of these guests does, and no
# reservation may be taken that never stops anybody.
printf 'stop user\nr_min 5000000\n' >$root/guard/settings
echo 1000000 >$root/guard/cpu1/bandwidth 2>/dev/null
check fresh-refused "$([ $? != 0 ] && grep -c "can't count" $root/last_cmd_status)" "$(cat $root/guard/cpu1/bandwidth $root/last_cmd_status)"
echo r_min 0 >$root/guard/settings
rm -f "$map"
