#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Many `soloist run` at once, and what is left of those that are killed: each gets
# colours as long as there are any, and a group of a killed run goes with its last
# task.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# groups: how many of runs there are.
groups() { ls $root/groups | grep -c ^run-; }

# 31 of the 32 bank sets are asked for at once, and held until all have theirs; then
# again, while the kernel still takes back what the first ones had.
for round in 1 2; do
	pids=
	for i in $(seq 31); do
		soloist run --colors 1 -- sleep 1000 2>said."$i" &
		pids="$pids $!"
	done
	until_ '[ "$(cat $root/groups/run-*/members 2>/dev/null | wc -w)" = 31 ] || [ -s "$(ls -S said.* | head -n 1)" ]'
	same "all-in-$round" "$(cat $root/groups/run-*/bank_set | sort -n | uniq | wc -l) $(cat said.*)" "31 "
	kill -TERM $pids
	for pid in $pids; do wait "$pid"; done
	same "all-gone-$round" "$(groups)" 0
done

# What has no room is refused, and told so; nothing of it stays.
soloist group create most --bank-sets 0-30 >/dev/null
expect last-one 0 soloist run --colors 1 -- true
case $(soloist run --colors 2 -- true 2>&1) in
*"2 bank sets wanted, 1 free"*"node 0: "*) ok none-free ;;
*) fail none-free "$(soloist run --colors 2 -- true 2>&1)" ;;
esac
same none-left "$(groups)" 0
soloist group rm most

# A killed run's command goes on in its colours; when it ends, the group goes.
soloist run --colors 1 -- sleep 1000 &
run=$!
until_ '[ "$(cat $root/groups/run-$run/members 2>/dev/null | wc -w)" = 1 ]'
orphan=$(tr -d '\n' <$root/groups/run-$run/members)
kill -KILL $run
wait $run 2>/dev/null
soloist group list >/dev/null
same goes-on "$(groups) $(cat /proc/"$orphan"/comm)" "1 sleep"
kill -KILL "$orphan"
until_ "[ \$(cat $root/groups/run-$run/ephemeral) = gone ]"
same colours-are-free "$(cat $root/groups/run-$run/bank_set)" ""
soloist group list >/dev/null
same goes-with-it "$(groups)" 0

# 30 are killed together with what they ran; the next one runs.
pids=
for i in $(seq 30); do
	soloist run --colors 1 -- sleep 1000 &
	pids="$pids $!"
done
until_ '[ "$(cat $root/groups/run-*/members 2>/dev/null | wc -w)" = 30 ]'
kill -KILL $pids
for pid in $pids; do wait "$pid" 2>/dev/null; done
kill -KILL $(cat $root/groups/run-*/members)
until_ '[ -z "$(cat $root/groups/run-*/members 2>/dev/null | tr -d "\n")" ]'
same thirty-left "$(groups)" 30
expect after-thirty 0 soloist run --colors 31 -- true
same thirty-swept "$(groups)" 0

# So does a named one whose run (`--create`) was killed before its command began.
mkdir $root/groups/named
echo 1 >$root/groups/named/ephemeral
soloist group list >/dev/null
same named-swept "$(ls $root/groups)" ""

# A group of that very name is no reason not to run, and stays if it is used.
sleep 1000 &
user=$!
sh -c 'mkdir '$root'/groups/run-$$; echo '$user' >'$root'/groups/run-$$/tasks; echo $$ >name
	exec soloist run --colors 1 -- sh -c "ls $1/groups >there"' sh $root
same same-pid-runs $? 0
same same-pid-names "$(tr '\n' ' ' <there)" "run-$(cat name) run-$(cat name)-2 "
same same-pid-stays "$(ls $root/groups)" "run-$(cat name)"
kill $user
until_ "[ ! -e /proc/$user ]"
soloist group list >/dev/null
same used-no-more "$(groups)" 0
