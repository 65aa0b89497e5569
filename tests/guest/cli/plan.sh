#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A plan on a running host: made, checked, run under, disturbed and mended. The
# machine is the guest's with memory that the model knows (plan.toml).
set -u
here=$(dirname "$0")
. "$here/../lib/cli.sh"
map=$(mktemp)
cat $root/map >"$map"
machine_here "$here/plan.toml" >machine.toml

# The kernel's servers of ordinary tasks: all on, or off.
# Each CPU its own: else the kernel warns, if a server whose last task sleeps is active still.
servers() { # NANOSECONDS
	for f in /sys/kernel/debug/sched/*_server/cpu*/runtime; do
		cpu=${f%/runtime}
		[ ! -e "$f" ] || taskset -c "${cpu##*/cpu}" sh -c "echo $1 >$f"
	done
}

# The next test finds the module as we did.
restore() {
	servers 50000000
	for g in $root/groups/*; do [ -d "$g" ] && rmdir "$g"; done
	echo off >$root/guard/cpu1/bandwidth
	printf 'r_min 0\nevent page-faults\nperiod_us 1000\nsharing none\nper_task 0\ncount_kernel 1\n' >$root/guard/settings
	[ "$(cat $root/map)" = "$(cat "$map")" ] || { soloist down >/dev/null && insmod "$MODULE" && cat "$map" >$root/map; }
	rm -f "$map"
}
trap restore EXIT

# Short periods, and no task whose pace the model would have to search: an emulator
# plays them, some forty times. Control's is too short to share a controller with camera, so
# that the logger is beside one of them and needs a limit.
cat >tasks.toml <<-'END'
	machine = "machine.toml"
	[[task]]
	name = "control"
	period = "50 us"
	wcet = "10 us"
	memory = "512K"
	lines = 0
	[[task]]
	name = "camera"
	period = "800 us"
	wcet = "200 us"
	memory = "512K"
	lines = 200
	[[task]]
	name = "logger"
	memory = "2M"
	kind = "stream"
END
# A host that has another map is no place for it; nothing is changed then.
expect other-map 1 soloist plan tasks.toml --apply
same other-map-nothing "$(soloist group list --json)" "[]"
soloist down >/dev/null && insmod "$MODULE" || fail reload "$(soloist down 2>&1)"
# No counters here: page faults stand for them.
echo 'event page-faults' >$root/guard/settings
# An incomplete map is taken if that is asked for.
sed 's/^trust = .*/trust = "incomplete"/' machine.toml >other.toml
sed 's/machine.toml/other.toml/' tasks.toml >other-tasks.toml
expect not-this-host 1 soloist plan other-tasks.toml --apply
case $out in *"--force takes it"*) ok not-this-host-says ;; *) fail not-this-host-says "$out" ;; esac
expect forced 0 soloist plan other-tasks.toml --apply --force
for task in control camera logger; do rmdir $root/groups/$task; done
for cpu in $root/guard/cpu*/bandwidth; do echo off >"$cpu"; done
expect map 0 soloist up --machine machine.toml
expect not-yet 1 soloist plan tasks.toml --check
# Its limits are of lines, which nothing here can count: what counts something else
# is refused, and by force the host's own is taken, with a word.
expect no-lines 1 soloist plan tasks.toml --apply
case $out in *LLC-misses*) ok no-lines-says ;; *) fail no-lines-says "$out" ;; esac
expect page-faults 1 soloist plan tasks.toml --apply --event page-faults
case $out in *"never stops a stream"*) ok page-faults-says ;; *) fail page-faults-says "$out" ;; esac
same nothing-yet "$(soloist group list --json)" "[]"
expect apply 0 soloist plan tasks.toml --apply --force
table=$out
case $out in *"page-faults counts no lines"*) ok apply-says ;; *) fail apply-says "$out" ;; esac
expect event-differs 1 soloist plan tasks.toml --check
# From 6.12 on they go before tasks with deadlines, until one does what is printed.
servers 50000000
if [ -d /sys/kernel/debug/sched/fair_server ]; then
	expect servers-differ 1 soloist plan tasks.toml --check --force
	case $out in *"fair_server may run ordinary tasks"*) ok servers-differ-says ;; *) fail servers-differ-says "$out" ;; esac
fi
echo "$table" | sed -n '/^  taskset -c /p' >servers
expect servers-off 0 sh -eu ./servers
expect as-planned 0 soloist plan tasks.toml --check --force
case $out in *"this host is as the plan says"*) ok as-planned-says ;; *) fail as-planned-says "$out" ;; esac
# What stands there is what was printed.
for task in control camera logger; do
	sets=$(echo "$table" | awk -v t=$task '$1 == t { print $4; exit }')
	same sets-$task "$(cat $root/groups/$task/bank_set)" "$sets"
done
limit=$(echo "$table" | awk '$1 == "logger" { print $6, $7; exit }')
core=$(echo "$table" | awk '$1 == "logger" { print $2; exit }')
same limit "$(cut -d' ' -f1 $root/guard/cpu"$core"/bandwidth)" "$((${limit% *} * 1000000))"

# As it says a task is started: in its group, on its core, its class, in colour.
run=$(echo "$table" | sed -n 's/^ *soloist \(run --group camera .*\)-- .*/\1/p')
# shellcheck disable=SC2086
expect runs 0 soloist $run -- soloist verify --self --strict
# shellcheck disable=SC2086
same class "$(soloist $run -- sh -c 'read -r s </proc/self/stat; set -- ${s##*) }; echo ${39}')" "1"

# A host that was changed since is told from its plan, and mended.
echo off >$root/guard/cpu"$core"/bandwidth
rmdir $root/groups/control
expect differs 1 soloist plan tasks.toml --check --force
case $out in *groups/control*cpu"$core"/bandwidth*) ok differs-named ;; *) fail differs-named "$out" ;; esac
case $out in *groups/camera*) fail differs-only "$out" ;; *) ok differs-only ;; esac
expect mended 0 soloist plan tasks.toml --apply --force
expect mended-check 0 soloist plan tasks.toml --check --force
# A limit is none if the guard is set otherwise.
for set in 'sharing spare' 'sharing proportional' 'period_us 2000' 'per_task 1' 'count_kernel 0'; do
	key=${set% *}
	echo "$set" >$root/guard/settings
	expect "differs-$key" 1 soloist plan tasks.toml --check --force
	case $out in *"guard/settings: $key"*) ok "differs-$key-named" ;; *) fail "differs-$key-named" "$out" ;; esac
	expect "mended-$key" 0 soloist plan tasks.toml --apply --force
	grep -qxF "$set" $root/guard/settings && fail "mended-$key-set" "$set" || ok "mended-$key-set"
done
# Nor may a core with deadlines be stopped.
timed=$(echo "$table" | awk '$1 == "control" { print $2; exit }')
echo 10000000 >$root/guard/cpu"$timed"/bandwidth || fail reserve "$(cat $root/last_cmd_status)"
expect stopped 1 soloist plan tasks.toml --check --force
case $out in *"core $timed has a reservation"*) ok stopped-says ;; *) fail stopped-says "$out" ;; esac
expect stopped-apply 1 soloist plan tasks.toml --apply --force
echo off >$root/guard/cpu"$timed"/bandwidth
expect not-stopped 0 soloist plan tasks.toml --check --force
servers 0
# All else is kept off the controllers of tasks with deadlines by the same command.
node_of() { # GROUP: the nodes of its bank sets
	soloist group show "$1" | awk '$1 == "nodes" { print $2 }'
}
expect rest-none-left 2 soloist plan tasks.toml --apply --rest
case $out in *"on every controller"*) ok rest-none-left-says ;; *) fail rest-none-left-says "$out" ;; esac
sed '/^\[\[task\]\]/{N;/camera/{:next;N;/lines/!b next;d}}' tasks.toml >alone.toml
same alone-tasks "$(grep -c '^name' alone.toml)" 2
for task in control camera logger; do rmdir $root/groups/$task; done
expect rest 0 soloist plan alone.toml --apply --rest
expect rest-check 0 soloist plan alone.toml --check --rest
mkdir -p /sys/fs/cgroup/system.slice
sh -c 'echo 0 >/sys/fs/cgroup/system.slice/cgroup.procs; exec soloist verify --self --strict' >out 2>&1
same rest-in-colour $? 0
apart=$(node_of rest-system)
[ -n "$apart" ] && [ "$(node_of control)" != "$apart" ] && ok rest-apart || fail rest-apart "$(node_of control) and $apart"
# Nobody of the plan is drawn in by where its shell is.
sh -c 'echo 0 >/sys/fs/cgroup/system.slice/cgroup.procs; exec soloist run --group control -- soloist verify --self --strict' >out 2>&1
same plan-keeps $? 0
for name in rest-system rest-user rest-machine rest-init; do rmdir $root/groups/$name; done
rmdir /sys/fs/cgroup/system.slice

# A set without a plan changes nothing.
sed 's/wcet = "200 us"/wcet = "795 us"/' tasks.toml >heavy.toml
expect no-plan 1 soloist plan heavy.toml --apply
case $out in *"nothing was applied"*) ok no-plan-says ;; *) fail no-plan-says "$out" ;; esac
# Nor is a host as a plan says that does not hold.
expect no-plan-check 1 soloist plan heavy.toml --check --force
