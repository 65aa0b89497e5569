#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What would take isolation away, or never give it, is told in words: cgroups by
# another path, cpusets and memory policies of other nodes, groups that go.
set -u
. "$(dirname "$0")/../lib/cli.sh"

tree=/sys/fs/cgroup
# says NAME STATUS WORDS COMMAND...
says() {
	name=$1
	want=$2
	words=$3
	shift 3
	out=$("$@" 2>&1)
	got=$?
	case $got:$out in
	$want:*"$words"*) ok "$name" ;;
	*) fail "$name" "status $got: $out" ;;
	esac
}

# The directory that a shell shows names the cgroup.
mkdir -p $tree/part1
soloist group create a --bank-sets 0-1 >/dev/null
for path in $tree/part1 $tree/part1/ /part1/cgroup.procs $tree/part1/cgroup.procs; do
	soloist group set a --cgroup $path >/dev/null
	sh -c 'echo 0 >"$0"/part1/cgroup.procs; exec soloist verify --self --strict' $tree >said 2>&1
	same "by-$(echo $path | tr / -)" $? 0
done
says no-such-cgroup 2 "there is no cgroup /none" soloist group set a --cgroup $tree/none
same still-bound "$(cat $root/groups/a/cgroup)" /part1

# A cpuset that allows the other node only.
echo +cpuset >$tree/cgroup.subtree_control
echo 1 >$tree/part1/cpuset.mems
sh -c 'echo 0 >"$0"/part1/cgroup.procs; exec sleep 1000' $tree &
stray=$!
executes $stray sleep
until_ '[ "$(sed -n "s/^cgroup_refused //p" $root/groups/a/stats)" != 0 ]'
words="allows no memory on node 0, where these are: $stray sleep (node 1)"
says show-cpuset 0 "$words" soloist group show a
says set-cpuset 0 "$words" soloist group set a --exhaust grow
says verify-cpuset 0 "$words" soloist verify --summary $stray
case $(soloist doctor) in
*"tasks and cpusets"*"$stray sleep"*) ok doctor-cpuset ;;
*) fail doctor-cpuset "$(soloist doctor)" ;;
esac
says pid-cpuset 1 "allocate on nodes 1, the group's colours are on 0" soloist group set a --pid $stray
in_part() { sh -c 'echo 0 >'$tree'/part1/cgroup.procs; exec "$@"' sh "$@"; }
soloist group set a --cgroup none >/dev/null
says run-cpuset 2 "cpuset.mems" in_part soloist run --group a -- true
says run-cpuset-colors 2 "allocate on node 1 only" in_part soloist run --bank-sets 2 -- true
expect run-where-it-may 0 in_part soloist run --colors 1 -- soloist verify --self --strict
# Of processors the kernel leaves out those that the cpuset forbids, and says nothing.
echo 2-3 >$tree/part1/cpuset.cpus
says run-cpus-cut 2 "CPUs 1-2: only 2 of them are online and allowed here" in_part soloist run --colors 1 --cpus 1-2 -- true
expect run-cpus-allowed 0 in_part soloist run --colors 1 --cpus 2-3 -- true
kill $stray

# A policy of its own that contradicts the colours, as numactl --membind=1 sets it: the
# reason that it died of.
case $(uname -m) in
x86_64) number=238 ;;
aarch64) number=237 ;;
esac
bound='my $nodes = pack("Q", 2); syscall('$number', 2, $nodes, 64) == 0 or die; exec @ARGV or die'
if [ -x /usr/bin/perl ]; then
	says membind '13[579]' "its memory policy" soloist run --bank-sets 2 -- perl -e "$bound" true
	says membind-before 2 "its memory policy" perl -e "$bound" soloist run --bank-sets 2 -- true
	says membind-spills 0 "since its memory policy" \
		soloist run --bank-sets 2 --exhaust spill -- perl -e "$bound" true
fi

# Groups with tasks stay.
sleep 1000 &
task=$!
executes $task sleep
soloist group set a --pid $task >/dev/null
says rm-names 1 "a (1 task: $task sleep)" soloist group rm a
: >empty.toml
says prune-names 1 "a (1 task: $task sleep)" soloist apply --prune "$PWD/empty.toml"
same still-in "$(cat $root/groups/a/tasks)" $task
expect prune-forced 0 soloist apply --prune --force "$PWD/empty.toml"
same pruned "$(ls $root/groups)" ""
kill $task
says no-group 1 "there is none; --create makes it" soloist run --group db -- true
expect created 0 soloist run --create --group db --colors 1 -- soloist verify --self --strict
same created-goes "$(ls $root/groups)" ""

# Of several commands at once each reads its own refusal.
mkdir $root/groups/b
(
	echo x >$root/groups/b/bank_set
	(echo often >$root/groups/b/exhaust) 2>/dev/null
	(exec cat $root/last_cmd_status) >other
	read -r own <$root/last_cmd_status
	echo "$own" >mine
) 2>/dev/null
case $(cat other mine | tr '\n' ' ') in
"exhaust: "*"bank_set: "*) ok own-refusal ;;
*) fail own-refusal "$(cat other mine)" ;;
esac
rmdir $root/groups/b
rmdir $tree/part1
