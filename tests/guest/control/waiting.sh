#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Filling the lists takes as long as there is memory, and its CPU lets it: who
# waits for it meanwhile, to empty them or for another map, can be ended before. So
# can a look at all memory, which nobody waits for who removes its group.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# COMMAND...: wait until it succeeds, 50 tries at most.
soon() {
	i=0
	while ! "$@" && [ $i -lt 50 ]; do
		i=$((i + 1))
		sleep 0.1
	done
}

in_our_code() { grep -q soloist "/proc/$1/stack"; }
is_gone() { [ ! -e "/proc/$1/exe" ]; }

# A filler that gets next to nothing of its CPU, until the other one ends.
taskset -c 0 sh -c 'while :; do :; done' &
busy=$!
chrt -i 0 taskset -c 0 sh -c "echo all >$root/lists" &
filling=$!
soon in_our_code $filling

# FILE TEXT: somebody writes it, and is ended.
try() {
	sh -c "echo '$2' >$root/$1" 2>/dev/null &
	writer=$!
	soon in_our_code $writer
	kill $writer
	soon is_gone $writer
	if [ ! -e /proc/$filling ]; then
		fail "$1" "the filling is over"
	elif ! is_gone $writer; then
		fail "$1" "still waits: $(cat /proc/$writer/stack)"
	else
		ok "$1-waits-and-is-ended"
	fi
}

try lists drain
try map ""
# slowly COMMAND: by one who gets next to nothing of its CPU, but to begin with.
slowly() {
	taskset -c 0 sh -c "chrt -i -p 0 \$\$; $1" 2>/dev/null &
	slow=$!
	soon in_our_code $slow
	in_our_code $slow || fail "$2" "it does not begin"
}
renice -n 10 -p $busy >/dev/null # next to nothing is enough
mkdir $root/groups/looks $root/groups/keeps
echo 3 >$root/groups/looks/bank_set
echo 4 >$root/groups/keeps/bank_set
slowly "echo 1 >$root/groups/looks/occupancy_all" look-begins
kill $slow
soon is_gone $slow
if is_gone $slow; then ok look-is-ended; else fail look-is-ended "$(cat /proc/$slow/stack)"; fi
# FILE TEXT: who removes the group does not wait until that is done.
goes() {
	slowly "echo $2 >$root/groups/$1" "$1-begins"
	rmdir "$root/groups/${1%/*}"
	same "$1-lets-go" $? 0
	wait $slow
	same "$1-ends-early" $? 1
}
goes looks/occupancy_all 1
goes keeps/reserve 32M

kill $busy
wait $filling
same filling-ends $? 0
same mode "$(cat $root/lists)" all
if [ -n "$(cat $root/map)" ]; then ok map-stays; else fail map-stays "none"; fi
echo drain >$root/lists
same drained "$(cat $root/lists)" demand
