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

# A reserve of frames that an earlier test left known to be zero would take no time.
echo drain >$root/lists
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
renice -n 5 -p $busy >/dev/null # it leaves more to those below
# slowly FILE TEXT: a group is made, and one of its files written by somebody who gets next to
# nothing of its CPU. Some are done all the same before they are seen: then once more.
slowly() {
	slow=
	tries=0
	while [ -z "$slow" ] && [ $tries -lt 20 ]; do
		tries=$((tries + 1))
		[ -d $root/groups/slow ] || mkdir $root/groups/slow
		echo 4-15 >$root/groups/slow/bank_set
		taskset -c 0 sh -c "chrt -i -p 0 \$\$; echo $2 >$root/groups/slow/$1" 2>/dev/null &
		slow=$!
		until in_our_code $slow || is_gone $slow; do :; done
		! is_gone $slow || slow=
	done
	[ -n "$slow" ] && return
	fail "$1" "it is never seen at work"
	kill $busy
	exit
}
slowly occupancy_all 1
kill $slow
soon is_gone $slow
if is_gone $slow; then ok look-is-ended; else fail look-is-ended "$(cat /proc/$slow/stack)"; fi
# FILE TEXT: who removes the group does not wait until that is done: it ends early.
goes() {
	ends=0
	rounds=0
	while [ $ends = 0 ] && [ $rounds -lt 10 ]; do
		rounds=$((rounds + 1))
		slowly "$1" "$2"
		rmdir $root/groups/slow
		wait $slow
		ends=$?
	done
	same "$1-lets-its-group-go" $ends 1
}
goes occupancy_all 1
goes reserve 128M

kill $busy
wait $filling
same filling-ends $? 0
same mode "$(cat $root/lists)" all
if [ -n "$(cat $root/map)" ]; then ok map-stays; else fail map-stays "none"; fi
echo drain >$root/lists
same drained "$(cat $root/lists)" demand
