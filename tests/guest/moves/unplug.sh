#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Memory goes offline while the module is unloaded: neither waits for the other,
# though the block's frames are in the module's lists. Needs: MODULE.
set -u
root=/sys/kernel/config/soloist
blocks=/sys/devices/system/memory
map=$(mktemp)
cat $root/map >"$map"
restore() {
	for state in $blocks/memory*/state; do
		grep -q offline "$state" && echo online >"$state"
	done
	[ -d $root ] || insmod "$MODULE"
	[ -n "$(cat $root/map)" ] || cat "$map" >$root/map
	rm -f "$map"
}
trap restore EXIT

if [ ! -e $blocks/memory8/state ]; then
	echo "skip unplug: no memory hotplug in this kernel"
	exit 0
fi
# Linux takes the first of some slabs for a page that can move (the number of slabs, 2, lies where
# it looks for a mark), can't move it, and tries for as long as nobody interrupts it. Then its last
# complaint is of a slab. A frame of a list is none.
is_slab() {
	dmesg | grep -A 4 'failed to isolate' | tail -n 5 | grep -q 'page_type: f5(slab)\|(slab|'
}
tries=0 gone=0 slow=0 slabs=0
while [ $tries -lt 4 ] && [ $slow = 0 ]; do
	tries=$((tries + 1))
	echo all >$root/lists
	timeout 180 rmmod soloist &
	unload=$!
	# Blocks go for as long as it lasts; some never do, for what is in them. On a busy
	# host (a tenth of a processor) one of the two took longer than 40 or 60 s.
	for n in 14 13 12 11 10 9 8; do
		kill -0 $unload 2>/dev/null || break
		timeout 120 sh -c "echo offline >$blocks/memory$n/state" 2>/dev/null
		case $? in
		0) gone=$((gone + 1)) && echo online >$blocks/memory$n/state ;;
		124)
			is_slab && slabs=$((slabs + 1)) || slow=$((slow + 1))
			echo "# block $n did not go in 120 s ($slabs for a slab)"
			;;
		esac
	done
	wait $unload || slow=$((slow + 1))
	insmod "$MODULE" && cat "$map" >$root/map
done
if [ $slow = 0 ] && [ $gone = 0 ]; then
	echo "skip unplug-while-unloading: no block went (boot with movablecore=)"
elif [ $slow = 0 ]; then
	echo "ok unplug-while-unloading ($gone blocks)"
else
	echo "FAIL unplug-while-unloading: $slow waited for ever"
	exit 1
fi
