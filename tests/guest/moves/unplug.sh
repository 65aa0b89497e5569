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
# How many frames of block $1 are in which state, but for the free ones (/proc/kpageflags).
frames() {
	size=$((0x$(cat $blocks/block_size_bytes) / $(getconf PAGESIZE)))
	dd if=/proc/kpageflags bs=$((size * 8)) skip="$1" count=1 2>/dev/null | od -An -v -tx8 -w8 |
		grep -v ' 0*400$' | sort | uniq -c | sort -rn
}
# take_off N: block N goes offline; 124 where it does not in 120 s: shortly before, what is
# in the way is looked at.
take_off() {
	(sleep 110 && frames "$1" >left) &
	look=$!
	timeout 120 sh -c "echo offline >$blocks/memory$1/state" 2>/dev/null
	status=$?
	kill $look 2>/dev/null
	wait $look 2>/dev/null
	return $status
}
# Linux takes the first of some slabs for a page that can move (the number of slabs, 2, lies where
# it looks for a mark), can't move it, and tries for as long as nobody interrupts it. Nothing but
# slabs (bit 7) is left in the block then: a frame of a list is none.
is_slab() {
	grep -q ' [0-9a-f]*[89a-f][0-9a-f]$' left && ! grep -q ' [0-9a-f]*[0-7][0-9a-f]$' left
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
		take_off $n
		case $? in
		0) gone=$((gone + 1)) && echo online >$blocks/memory$n/state ;;
		124)
			is_slab && slabs=$((slabs + 1)) || slow=$((slow + 1))
			echo "# block $n did not go in 120 s ($slabs for a slab); frames, flags:"
			sed 's/^ */#   /' left | head -n 12
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
