#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# AMD's translation library (amd_atl), as far as a machine without a Zen data
# fabric can show it: what is refused and in which words, that nothing is
# translated, and that the module comes and goes as before.
set -u
here=$(dirname "$0")
. "$here/../lib/cli.sh"
dir=$root/firmware

# refused NAME WRITTEN WORDS
refused() {
	if echo "$2" >$dir/locate 2>/dev/null; then
		fail "$1" "'$2' was taken"
	else
		case $(cat $root/last_cmd_status) in
		*"$3"*) ok "$1" ;;
		*) fail "$1" "$(cat $root/last_cmd_status)" ;;
		esac
	fi
}

same mode "$(stat -c %a $dir/locate)" 600
same nothing-asked "$(cat $dir/locate)" ""
if echo 0:0:0x1000 >$dir/locate 2>/dev/null; then
	same not-translated "$(cat $dir/locate)" "0:0:0x1000 error"
	echo "0:3:0x5d000 1:31:64" >$dir/locate
	same two "$(tr '\n' ' ' <$dir/locate)" "0:3:0x5d000 error 1:31:0x40 error "
	refused empty "" "expected places"
	refused words "0:3" "expected CPU:CHANNEL:ADDRESS"
	refused letters "0:three:0x40" "expected CPU:CHANNEL:ADDRESS"
	refused cpu "4000:0:0x40" "CPU 4000 is not online"
	refused channel "0:32:0x40" "channel 32: at most 31"
	refused many "$(seq -f 0:0:%g 17 | tr '\n' ' ')" "more than 16 places"
	same after-refusal "$(cat $dir/locate)" ""
	[ -e /sys/module/amd_atl ] && fail no-fabric "the library is loaded here"
else
	refused not-built 0:0:0x1000 "without AMD's address translation"
fi

if [ -z "$(cat $dir/components)" ]; then
	expect detect 1 soloist map detect --from firmware
	case $out in
	*"no ACPI ADXL here, or in this kernel); which channels have memory is not known: no EDAC driver"*) ok says-why ;;
	*) fail says-why "$out" ;;
	esac
fi

# The library is held only while it is asked: the module can go, and come.
map=$(mktemp)
cat $root/map >"$map"
expect unload 0 rmmod soloist
if [ -e $root ]; then fail gone "$root is still there"; else ok gone; fi
expect load 0 insmod "$MODULE"
cat "$map" >$root/map
same asked-before "$(cat $dir/locate)" ""
rm -f "$map"
