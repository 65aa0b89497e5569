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
# A look at all frames, by one who gets next to nothing of its CPU, either.
mkdir $root/groups/looks
echo 3 >$root/groups/looks/bank_set
look() {
	chrt -i 0 taskset -c 0 sh -c "echo 1 >$root/groups/looks/occupancy_all" 2>/dev/null &
	looker=$!
	soon in_our_code $looker
}
look
kill $looker
soon is_gone $looker
if is_gone $looker; then ok look-is-ended; else fail look-is-ended "$(cat /proc/$looker/stack)"; fi
look
if timeout 20 rmdir $root/groups/looks; then ok look-lets-rmdir; else fail look-lets-rmdir "it waits"; fi
wait $looker
same look-ends $? 1

kill $busy
wait $filling
same filling-ends $? 0
same mode "$(cat $root/lists)" all
if [ -n "$(cat $root/map)" ]; then ok map-stays; else fail map-stays "none"; fi
echo drain >$root/lists
same drained "$(cat $root/lists)" demand
