#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Load and unload the module N times (default 100) under load; MemFree must be
# back to within 1 % and every load must work. Needs: MODULE (path of the .ko),
# and the module loaded with a map when we start, which we put back at the end.
set -u
. "$(dirname "$0")/../lib/memfree.sh"
root=/sys/kernel/config/soloist
n=${RELOADS:-100}
map=$(mktemp)
cat $root/map >"$map"

# However we end, the next test finds the module as we did.
restore() {
	[ -z "${load:-}" ] || kill "$load" 2>/dev/null
	[ -d $root ] || insmod "$MODULE"
	[ -n "$(cat $root/map)" ] || cat "$map" >$root/map
	rm -f "$map"
}
trap restore EXIT

fail() {
	echo "FAIL $1: $2"
	exit 1
}

unload() {
	for d in $root/groups/* $root/rules/*; do
		[ -d "$d" ] && rmdir "$d"
	done
	rmmod soloist
}

unload || fail reload "cannot unload the module to begin with"
before=$(mem_free)

# The load: processes that fault, fork and exit all the time.
(while :; do head -c 20000000 /dev/zero | tail -c 1 >/dev/null; done) &
load=$!

i=0
while [ $i -lt "$n" ]; do
	insmod "$MODULE" || fail reload "insmod number $i"
	cat "$map" >$root/map || fail reload "map number $i: $(cat $root/last_cmd_status)"
	mkdir $root/groups/r || fail reload "mkdir number $i"
	echo $((i % 4)) >$root/groups/r/bank_set || fail reload "bank_set number $i"
	(echo 0 >$root/groups/r/tasks && head -c 4000000 /dev/zero | tail -c 1 >/dev/null) &
	wait $!
	unload || fail reload "rmmod number $i"
	i=$((i + 1))
done
kill $load
wait $load 2>/dev/null
load=
after=$(mem_free)
echo "ok reload-$n-times"
lost=$((before - after))
if [ $((lost * 100)) -lt "$before" ]; then
	echo "ok reload-memory-back ($before kB free before, $after after)"
else
	fail reload-memory-back "$before kB free before, $after after"
fi
