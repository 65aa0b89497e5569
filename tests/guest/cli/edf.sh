#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tasks that no fixed priorities hold, under EDF: what `soloist plan` prints is typed
# as it stands, and nobody misses. An emulator on a busy host cannot play two tasks that
# need 0.86 of a CPU, so the jobs take a quarter of their wcet: that EDF holds where fixed
# priorities do not is for soloist-rt's tests.
set -u
here=$(dirname "$0")
. "$here/../lib/cli.sh"
. "$here/../lib/trace.sh"
map=$(mktemp)
cat $root/map >"$map"
machine_here "$here/plan.toml" >machine.toml
running=
restore() {
	# shellcheck disable=SC2086
	[ -z "$running" ] || { kill $running; wait $running; }
	# If the cpuset goes before its tasks' periods are over, the kernel refuses
	# deadline tasks from then on (docs/how-to/real-time.md).
	sleep 3
	for g in $root/groups/*; do [ -d "$g" ] && rmdir "$g"; done
	rmdir /sys/fs/cgroup/soloist-core-1
	soloist down >/dev/null && insmod "$MODULE" && cat "$map" >$root/map
	rm -f "$map"
}
trap restore EXIT
cat >tasks.toml <<-'END'
	machine = "machine.toml"
	order = "edf"
	[[task]]
	name = "quick"
	core = 1
	period = "500 ms"
	wcet = "240 ms"
	[[task]]
	name = "slow"
	core = 1
	period = "700 ms"
	wcet = "270 ms"
END
soloist down >/dev/null && insmod "$MODULE" || fail reload "$(soloist down 2>&1)"
expect apply 0 soloist plan tasks.toml --apply
echo "$out" | sed -n '/^to run it/,$p' | sed 1d | sed '/^$/,$d' >printed
sed -n '/^  sh -c/!p' printed >prepare
expect prepare 0 sh -eu ./prepare
same cpuset "$(cat /sys/fs/cgroup/soloist-core-1/cpuset.cpus.partition)" root
cp "$here/../../../build/tests/guest/lib/periodic" quick
cp quick slow
# start NAME PERIOD_US WORK_US
start() {
	sed -n "s|^  \\(sh -c .*\\)\\./$1'.*|exec \\1./$1 $2 $3 1000'|p" printed >"run-$1"
	sh "./run-$1" >"$1.out" &
	running="$running $!"
	until_ "[ -s $1.out ]" || fail "start-$1" "$(cat "run-$1")"
}
start quick 500000 60000
start slow 700000 70000
for name in quick slow; do
	pid=$(grep -lx $name /proc/[0-9]*/comm | cut -d / -f 3 | tail -n 1)
	read -r stat <"/proc/$pid/stat"
	set -- ${stat##*) }
	same "class-$name" "${39}" 6
done
# of TASK KEY: a number of the record
of() {
	awk -v task="\"$1\"," -v key="\"$2\":" '
		$1 == "\"task\":" { mine = ($2 == task) }
		mine && $1 == key { sub(/,$/, "", $2); print $2; exit }' record.json
}
# Where the host stands still, jobs are late or lost: one look of several tells.
for try in 1 2 3 4 5 6; do
	soloist trace --tasks tasks.toml --for 8s --json >record.json
	status=$?
	[ $status = 0 ] && break
done
same met $status 0
same misses "$(of quick missed) $(of slow missed)" "0 0"
[ "$(of quick jobs)" -ge 5 ] && [ "$(of slow jobs)" -ge 3 ] && ok jobs || fail jobs "$(cat record.json)"
