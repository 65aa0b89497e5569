#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A machine that a stranger filled: who holds a group's colours is shown, evicted, and a
# running process moves in.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# CPU 0 is of node 0, and so are the pages that it takes and the group's sets, where there
# is room once the cache of other tests is dropped.
echo 3 >/proc/sys/vm/drop_caches
taskset -c 0 dd if=/dev/zero of=/tmp/fill bs=1M count=300 2>/dev/null
soloist group create g --node 0 --bank-sets 3 --mode exclusive >/dev/null
case $(soloist group show g) in
*"memory       "*"page cache "*) ok shown ;;
*) fail shown "$(soloist group show g)" ;;
esac
cache() { soloist group show g --json | tr -d ' \n' | sed -n 's/.*"cache":\([0-9]*\).*/\1/p'; }
before=$(cache)
[ "$before" -gt 3000 ] && ok cache-counted || fail cache-counted "$before pages"
soloist doctor | grep -q "of g's memory is others'" && ok doctor-says || fail doctor-says "it does not"
soloist top -n 1 | grep -q OTHERS && ok top-says || fail top-says "it does not"
soloist metrics | grep -q 'soloist_group_occupancy{group="g",holder="cache"}' && ok metrics-say ||
	fail metrics-say "they do not"

out=$(soloist group set g --evict)
case $out in
*"others in g: "*" pages moved"*) ok evict-says ;;
*) fail evict-says "$out" ;;
esac
after=$(cache)
[ "$after" -lt $((before / 20)) ] && ok evicted || fail evicted "$after of $before pages stayed: $out"
[ "$(tr -d '\0' </tmp/fill | wc -c)" = 0 ] && [ "$(wc -c </tmp/fill)" = 314572800 ] && ok content ||
	fail content "the file changed"

# A process that runs already moves in, and is whole in colour.
sleep 1000 &
pid=$!
executes $pid sleep
out=$(soloist group set g --pid $pid --move)
case $out in
*"process $pid: "*" pages moved"*) ok move-says ;;
*) fail move-says "$out" ;;
esac
share=$(soloist verify $pid --json | tr -d ' \n' | sed -n 's/.*"own":{"present":\([0-9]*\),"in_color":\([0-9]*\).*/\1 \2/p')
set -- $share
[ $(($2 * 10)) -ge $(($1 * 6)) ] && ok moved-in || fail moved-in "$2 of $1 pages: $out"
expect recolor 0 soloist recolor $pid
expect recolor-group 0 soloist recolor g --json
expect verify-own 1 soloist verify 1 --strict
expect recolor-stranger 2 soloist recolor 1
expect move-needs-pid 2 soloist group set g --move
kill $pid
wait

# At creation, and by a user who is not root.
rm /tmp/fill
soloist group rm --force g
expect create-evicts 0 soloist group create h --bank-sets 4 --mode exclusive --evict
case $(setpriv --reuid 65534 --regid 65534 --clear-groups ./soloist group set h --evict 2>&1) in
*"needs root"*) ok evict-needs-root ;;
*) fail evict-needs-root "$(setpriv --reuid 65534 --regid 65534 --clear-groups ./soloist group set h --evict 2>&1)" ;;
esac
soloist group rm h

# A rule's group has no directory, and gets its colours for itself all the same.
cp /bin/sleep ./nap
soloist rule add nap --path "$PWD/nap" --colors 1 >/dev/null
taskset -c 0 dd if=/dev/zero of=/tmp/fill bs=1M count=300 2>/dev/null
./nap 1000 &
pid=$!
executes $pid nap
label=$(soloist group list --json | sed -n 's/.*"name": "\(nap#[0-9]*\)".*/\1/p')
out=$(soloist group set "$label" --evict)
case $out in
*"others in $label: "*" pages moved"*) ok rule-evict ;;
*) fail rule-evict "$label: $out" ;;
esac
soloist group set "$label" --evict --mode shareable 2>&1 | grep -q "can't be changed" && ok rule-not-set ||
	fail rule-not-set "it was"
kill $pid
wait $pid 2>/dev/null
soloist rule rm nap
rm /tmp/fill

# Of a machine that is too large for a read to look at all of it, all is looked at for
# --strict=banks, in the colours that others have left.
sample=/sys/module/soloist/parameters/occupancy_sample
was=$(cat $sample)
echo 64 >$sample
soloist group create alone --node 0 --bank-sets 3 --mode exclusive --evict >/dev/null
alone() { soloist run --group alone -- soloist verify --self --strict="$1" --json; }
# Other tasks may take what is free there between an eviction and the look.
for i in 1 2 3 4 5 6 7 8; do
	out=$(alone banks 2>/dev/null)
	status=$?
	[ $status != 0 ] || break
	echo 1 >$root/groups/alone/evict
done
same alone $status 0
echo "$out" | grep -q '"one_of": 1,' && ok alone-in-all || fail alone-in-all "$out"
expect alone-by-a-sample 0 alone own
echo "$out" | grep -qE '"one_of": ([2-9]|[1-9][0-9])' && ok sampled || fail sampled "$out"
soloist group rm alone
echo drain >$root/lists
echo "$was" >$sample
