#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist group create rest --everything-else`: all tasks of the machine are in its
# colours, those that come too, but for what is in a group already.
set -u
. "$(dirname "$0")/../lib/cli.sh"
cg=/sys/fs/cgroup

in_group() { grep -qx "$2" $root/groups/"$1"/members; }
is_in() { if in_group "$2" "$3"; then ok "$1"; else fail "$1" "$3 is not in $2"; fi; }
is_out() { if in_group "$2" "$3"; then fail "$1" "$3 is in $2"; else ok "$1"; fi; }

soloist group create rt --bank-sets 3 --mode exclusive >/dev/null
sleep 1000 &
before=$!
sh -c 'sleep 1000 & wait' &
hand=$!
executes $before sleep
soloist group set rt --pid $hand >/dev/null

# A rule asks for the programs of its tasks, and gives each a set of its own.
counts() { sed -n "s/^$1 //p" $root/rules/nap/stats; }
run_as() {
	"$PWD/$1" 1000 &
	pid=$!
	executes $pid "${2-$1}"
}
cp "$(command -v sleep)" nap
echo 'exec sleep 1000' >plain
chmod 755 plain
soloist rule add nap --path "$PWD/[np]*" >/dev/null
soloist group create rest --bank-sets 0-2 --everything-else >/dev/null
run_as nap
same ruled "$(counts matched)" 1
is_out ruled-is-not-in rest $pid
soloist verify $pid --strict >/dev/null && ok ruled-in-color ||
	fail ruled-in-color "$(soloist verify $pid --summary)"
case $(soloist group list | sed -n 's/^nap#[0-9]* *\([^ ]*\) .*/\1/p') in
'' | [0-3]) fail ruled-own-set "$(soloist group list)" ;;
*) ok ruled-own-set ;;
esac
kill $pid
# No program, which the kernel says after the rule: the shell reads it.
run_as plain sleep
same failed-asked "$(counts matched)" 2
is_in failed-comes-back rest $pid
kill $pid
soloist group rm rest

expect create 0 soloist group create rest --everything-else
same all-but-exclusive "$(cat $root/groups/rest/bank_set)" 0-2,4-31
same spills "$(cat $root/groups/rest/exhaust) $(cat $root/groups/rest/cgroup)" "spill everything-else"
case $(soloist group show rest) in
*"cgroup       everything-else"*"not there now"*) fail shown "it says that it is not there" ;;
*"cgroup       everything-else"*) ok shown ;;
*) fail shown "$(soloist group show rest)" ;;
esac
is_in was-there rest $before
is_in init rest 1
is_in by-hand-stays rt $hand
is_out by-hand-is-not-in rest $hand
sleep 1000 &
new=$!
is_in new-one rest $new
soloist verify $new --strict >/dev/null && ok new-in-color ||
	fail new-in-color "$(soloist verify $new --summary)"
soloist run --bank-sets 3 -- true 2>/dev/null && fail exclusive-stays "3 was given" || ok exclusive-stays
soloist run -- sh -c 'soloist verify --self --strict >/dev/null; sleep 0' 2>/dev/null
same run-without-a-free-one $? 1
why=$(soloist group create rest2 --everything-else 2>&1)
same one-alone $? 1
case $why in
*"is bound to group rest"*) ok one-alone-says ;;
*) fail one-alone-says "$why" ;;
esac

# Bound cgroups come first; who leaves them is everything else again.
if [ -e $cg/cgroup.procs ]; then
	mkdir $cg/part
	echo $before >$cg/part/cgroup.procs
	is_in below-is-else rest $before
	soloist group set rest --bank-sets 0-2,5-31 >/dev/null
	soloist group create part --bank-sets 4 --cgroup /part >/dev/null
	is_in nearest-decides part $before
	echo $before >$cg/cgroup.procs
	is_in back-to-else rest $before
	echo $hand >$cg/part/cgroup.procs
	is_in bound-takes part $hand
	soloist group rm --force part
	rmdir $cg/part 2>/dev/null
fi

# Where no set is free a rule's program stays.
soloist group set rest --bank-sets 0-2,4-31 >/dev/null
refused=$(counts refused)
run_as nap
is_in none-free-stays rest $pid
same none-free "$(counts refused)" $((refused + 1))
kill $pid
soloist rule rm nap

expect rm 0 soloist group rm rest
sleep 1000 &
plain=$!
soloist verify $plain --summary | grep -q 'in no group' && ok undone || fail undone "$(soloist verify $plain --summary)"
kill $before $hand $new $plain
soloist group rm --force rt
