#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist trace` on a real kernel: two periodic programs that share a processor
# with eight loops miss on plain Linux, and hold under the priorities that their
# plan gives them. Emulated memory has no interference, so this is about
# processor time only: what colours and bandwidth are for can't be shown here.
set -u
here=$(dirname "$0")
. "$here/../lib/cli.sh"
. "$here/../lib/trace.sh"
CPU=1
cat >tasks.toml <<-'END'
	[[task]]
	name = "control"
	period = "200 ms"
	wcet = "20 ms"
	deadline = "100 ms"
	[[task]]
	name = "camera"
	period = "500 ms"
	wcet = "60 ms"
	deadline = "400 ms"
END
# By these names the trace knows them.
cp "$here/../../../build/tests/guest/lib/periodic" control
cp control camera

# start FLAGS-OF-CONTROL FLAGS-OF-CAMERA: both, and when they are past their own
# beginnings, eight loops beside them.
start() {
	rm -f control.out camera.out
	# shellcheck disable=SC2086
	soloist run --group tasks $1 --cpus $CPU -- ./control 200000 20000 1000 >control.out &
	running=$!
	# shellcheck disable=SC2086
	soloist run --group tasks $2 --cpus $CPU -- ./camera 500000 60000 1000 >camera.out &
	running="$running $!"
	for i in $(seq 200); do
		if [ -s control.out ] && [ -s camera.out ]; then break; fi
		sleep 0.1
	done
	for i in $(seq 8); do
		taskset -c $CPU sh -c 'while :; do :; done' &
		running="$running $!"
	done
}
stop() {
	# shellcheck disable=SC2086
	kill $running
	# shellcheck disable=SC2086
	wait $running
}
# of TASK KEY: a number of the record
of() {
	awk -v task="\"$1\"," -v key="\"$2\":" '
		$1 == "\"task\":" { mine = ($2 == task) }
		mine && $1 == key { sub(/,$/, "", $2); print $2; exit }' record.json
}

soloist group create tasks --colors 2 >/dev/null || fail group "$(soloist group list)"

# As Linux shares the processor, a ninth of it is for each.
start "" ""
soloist trace --tasks tasks.toml --for 3s --svg linux.svg --json >record.json
same linux-status $? 1
for task in control camera; do
	echo "# Linux: $task: $(of $task missed) of $(of $task jobs) missed, worst $(of $task response_worst_ns) ns, preempted $(of $task preempted) times"
done
missed=$(($(of control missed) + $(of camera missed)))
[ "$missed" -ge 3 ] && ok linux-misses || fail linux-misses "$missed missed: $(cat record.json)"
[ "$(of control preempted)" -gt 0 ] && ok linux-preempts || fail linux-preempts "$(cat record.json)"
stop

# Rate monotonic, as `soloist plan` would have it.
start "--rt 90" "--rt 89"
# Where the host stands still, jobs are late or lost: one look of several tells.
as_planned() {
	soloist trace --tasks tasks.toml --for 3s --svg plan.svg --perfetto plan.json --json >record.json
	status=$?
	[ $status = 0 ] && [ "$(of control jobs)" -ge 10 ] && [ "$(of camera jobs)" -ge 4 ] &&
		[ "$(of control execution_max_ns)" -lt 80000000 ]
}
for try in 1 2 3 4 5 6 7 8; do
	if as_planned; then break; fi
done
for task in control camera; do
	echo "# plan: $task: $(of $task missed) of $(of $task jobs) missed, worst $(of $task response_worst_ns) ns, preempted $(of $task preempted) times"
done
same plan-status $status 0
same plan-misses "$(of control missed) $(of camera missed)" "0 0"
# Some 15 and 6 of them; the emulator's timers may lose some.
[ "$(of control jobs)" -ge 10 ] && [ "$(of camera jobs)" -ge 4 ] && ok plan-jobs || fail plan-jobs "$(cat record.json)"
# A job executes as long as the program says, and a little more.
long=$(of control execution_max_ns)
[ "$long" -ge 20000000 ] && [ "$long" -lt 80000000 ] && ok plan-executes || fail plan-executes "$long ns"
same cores "$(grep -o "core $CPU<" plan.svg | wc -l)" 2
crossed() { grep -o 'd="M[0-9.]* [0-9.]*l9 9m0' "$1" | wc -l; }
[ "$(crossed linux.svg)" -gt 1 ] && [ "$(crossed plan.svg)" = 0 ] && ok chart || fail chart "$(crossed linux.svg) and $(crossed plan.svg) crosses"
[ "$(grep -o '"name":"release"' plan.json | wc -l)" -ge 14 ] && ok perfetto || fail perfetto "$(head -c 300 plan.json)"

# By id and by group; Ctrl-C ends it as well as the time does.
pid=$(grep -lx control /proc/[0-9]*/comm | cut -d / -f 3) # bare Debian has no pgrep
soloist trace --pid "$pid" --period 200ms >table &
trace=$!
for i in $(seq 100); do [ -d $tracing/instances/soloist-$trace ] && break || sleep 0.1; done
same instance "$(ls $tracing/instances)" "soloist-$trace"
sleep 3
kill -INT $trace
wait $trace
status=$?
# A host that stops the guest's clock makes a job late: the status says no else.
same interrupted $status "$(awk '$1 == "control" { print ($8 > 0) }' table)"
[ "$(awk '$1 == "control" { print ($7 >= 2) }' table)" = 1 ] && ok by-id || fail by-id "$(cat table)"
soloist trace --group tasks --for 600ms >table
same by-group "$(awk 'NR > 1 { print $1 }' table | tr '\n' ' ')" "camera control "
# On a terminal that does not know its width, as on a serial line, and as the page
# shows it.
. "$here/../../tutorial/plain.sh"
head=$(script -qec "soloist trace --tasks tasks.toml --for 600ms" /dev/null </dev/null | tr -d '\r' | head -n 1 | plain)
console "$here/../../../evidence/real-time.md" | plain | grep -qxF -e "$head" && ok page-shows || fail page-shows "$head"
stop

# The module stops a processor: that is throttled time. What another test set stays,
# such as a peak that is less than this.
printf 'event cpu-clock\nperiod_us 20000\nr_min 64000000000\nsharing none\nwrite_event none\nwrite_r_min 0\npeak 0\n' >$root/guard/settings ||
	fail settings "$(cat $root/last_cmd_status)"
echo '32000000000 reclaim=0' >$root/guard/cpu$CPU/bandwidth # 10 ms of 20
for try in 1 2 3 4 5 6 7 8; do
	soloist trace --json --for 2s -- taskset -c $CPU sh -c 'while :; do :; done' >record.json
	throttled=$(awk '$1 == "\"throttled_ns\":" { n += $2 } END { print n + 0 }' record.json)
	if [ "$throttled" -gt 300000000 ]; then break; fi
done
[ "$throttled" -gt 300000000 ] && ok throttled || fail throttled "$throttled ns of 2 s: $(cat record.json)"
echo off >$root/guard/cpu$CPU/bandwidth
printf 'r_min 0\nevent page-faults\nperiod_us 1000\n' >$root/guard/settings

# Who was not seen is not known to have met a deadline.
expect nobody-seen 1 soloist trace --tasks tasks.toml --for 300ms
case $out in *"camera, control: no job was seen"*) ok nobody-seen-says ;; *) fail nobody-seen-says "$out" ;; esac
expect nobody-ran 1 soloist trace --for 300ms --skip 10s --period 100ms -- sleep 1
case $out in *"nothing is known"*) ok nobody-ran-says ;; *) fail nobody-ran-says "$out" ;; esac

# Refusals.
expect empty-group 2 soloist trace --group tasks
case $out in *"nobody is in it"*) ok empty-group-says ;; *) fail empty-group-says "$out" ;; esac
umount $tracing
expect no-tracefs 1 soloist trace --pid 1 --for 1s
case $out in *"mount -t tracefs"*) ok no-tracefs-says ;; *) fail no-tracefs-says "$out" ;; esac
mount -t tracefs tracefs $tracing
expect no-root 1 setpriv --reuid 65534 --clear-groups -- "$PWD"/soloist trace --pid 1 --for 1s
case $out in *root*) ok no-root-says ;; *) fail no-root-says "$out" ;; esac
same nothing-left "$(ls $tracing/instances)" ""
soloist group rm tasks
