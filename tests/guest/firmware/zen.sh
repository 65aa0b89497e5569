#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# AMD's translation library (amd_atl) and memory controllers' registers (UMC), as
# far as a machine without a Zen data fabric can show them: what is refused and in
# which words, that nothing is told, and that the module comes and goes as before.
set -u
here=$(dirname "$0")
. "$here/../lib/cli.sh"
dir=$root/firmware
firmware=${MODULE%.ko}-firmware.ko
# Out of the tree, where it finds that module; our copy would not.
soloist() { "$SOLOIST_ROOT/build/tests/guest/bin/soloist" "$@"; }

# refused FILE NAME WRITTEN WORDS
refused() {
	if echo "$3" >$dir/$1 2>/dev/null; then
		fail "$2" "'$3' was taken"
	else
		case $(cat $root/last_cmd_status) in
		"$1: "*"$4"*) ok "$2" ;;
		*) fail "$2" "$(cat $root/last_cmd_status)" ;;
		esac
	fi
}

# A module of its own, that needs the other. Detection loads it and takes it away.
if [ -e $dir ]; then fail not-there "$dir is there"; else ok not-there; fi
if [ ! -e "$SOLOIST_ROOT/build/tests/guest/firmware/adxl.aml" ]; then
	expect detect-alone 1 soloist map detect --from firmware
	case $out in
	*"no ACPI ADXL here"*) ok detect-asks ;;
	*) fail detect-asks "$out" ;;
	esac
fi
if [ -e $dir ]; then fail left "$dir is still there"; else ok left; fi
expect loads 0 insmod "$firmware"
expect used 1 rmmod soloist
same mode "$(stat -c %a $dir/locate)" 600
same nothing-asked "$(cat $dir/locate)" ""
if echo 0:0:0x1000 >$dir/locate 2>/dev/null; then
	same not-translated "$(cat $dir/locate)" "0:0:0x1000 error"
	echo "0:3:0x5d000 1:31:64" >$dir/locate
	same two "$(tr '\n' ' ' <$dir/locate)" "0:3:0x5d000 error 1:31:0x40 error "
	refused locate empty "" "expected places"
	refused locate words "0:3" "expected CPU:CHANNEL:ADDRESS"
	refused locate letters "0:three:0x40" "expected CPU:CHANNEL:ADDRESS"
	refused locate cpu "4000:0:0x40" "CPU 4000 is not online"
	refused locate channel "0:32:0x40" "channel 32: at most 31"
	refused locate many "$(seq -f 0:0:%g 17 | tr '\n' ' ')" "more than 16 places"
	same after-refusal "$(cat $dir/locate)" ""
	[ -e /sys/module/amd_atl ] && fail no-fabric "the library is loaded here"
else
	refused locate not-built 0:0:0x1000 "without AMD's address translation"
fi

# Every stock kernel of x86 can read the registers; this machine has none.
umc() {
	same umc-mode "$(stat -c %a $dir/umc)" 600
	same umc-nothing-asked "$(cat $dir/umc)" ""
	echo "0:3:0x50 1:31:256" >$dir/umc
	same umc-not-there "$(tr '\n' ' ' <$dir/umc)" "0:3:0x50 error 1:31:0x100 error "
	refused umc umc-empty "" "expected places"
	refused umc umc-words "0:3" "expected NODE:CHANNEL:REGISTER"
	refused umc umc-node "65536:0:0x50" "node 65536: at most 65535"
	refused umc umc-channel "0:32:0x50" "channel 32: at most 31"
	refused umc umc-other-registers "0:0:0x1000" "register 0x1000: expected a multiple of 4 below 0x1000"
	refused umc umc-odd "0:0:0x51" "register 0x51: expected a multiple of 4"
	refused umc umc-many "$(seq -f 0:0:%g 0 4 64 | tr '\n' ' ')" "more than 16 places"
	same umc-after-refusal "$(cat $dir/umc)" ""
}
case $(uname -m) in
x86_64) umc ;;
*)
	echo "skip umc: AMD's registers, which kernels of x86-64 read"
	refused umc umc-not-built 0:0:0x50 "without AMD's system management network"
	;;
esac

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
expect unload-firmware 0 rmmod soloist_firmware
if [ -e $dir ]; then fail firmware-gone "$dir is still there"; else ok firmware-gone; fi
expect unload 0 rmmod soloist
if [ -e $root ]; then fail gone "$root is still there"; else ok gone; fi
expect load 0 insmod "$MODULE"
cat "$map" >$root/map
expect loads-again 0 insmod "$firmware"
same asked-before "$(cat $dir/locate)" ""
rmmod soloist_firmware
rm -f "$map"
