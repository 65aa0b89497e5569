#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The map from the firmware's address translation, all the way: ACPI table,
# stock kernel, module, solver, machine file. adxl.asl is the firmware, and
# known.toml what it translates by.
set -u
here=$(dirname "$0")
. "$here/../lib/cli.sh"
dir=$root/firmware
firmware=${MODULE%.ko}-firmware.ko
# Out of the tree, where it finds that module; our copy would not.
soloist() { "$SOLOIST_ROOT/build/tests/guest/bin/soloist" "$@"; }

# Nothing of it is in the kernel until it is asked for.
if [ -e $dir ]; then fail not-there "$dir is there"; else ok not-there; fi
expect loads 0 insmod "$firmware"
trap 'rmmod soloist_firmware 2>/dev/null' EXIT

if [ -z "$(cat $dir/components)" ]; then
	# Kernels for clouds have no ADXL, and a host without iasl no table.
	echo 0x1000 >$dir/decode 2>/dev/null && fail refused "decode was taken"
	grep -q "^decode: " $root/last_cmd_status && ok refused-in-words ||
		fail refused-in-words "$(cat $root/last_cmd_status)"
	expect no-firmware 1 soloist map detect --from firmware
	echo "skip adxl: no address translation here: $(cat $root/last_cmd_status)"
	exit 0
fi

same components "$(wc -l <$dir/components)" 15
echo "0x1234040 0x80000000" >$dir/decode
same answers "$(cut -d' ' -f1-3 $dir/decode | tr '\n' ' ')" "0x1234040 0x1234040 0x0 0x80000000 error "
for wrong in "" "0x12 tea" "$(seq 1 40 | tr '\n' ' ')"; do
	if echo "$wrong" >$dir/decode 2>/dev/null; then fail wrong "'$wrong' was taken"; else ok wrong; fi
done
same mode "$(stat -c %a $dir/decode)" 600

# Somebody else's stays; the one that detection loads goes.
expect detect 0 soloist map detect --from firmware --output found.toml
echo "$out"
if [ -e $dir ]; then ok stays; else fail stays "$dir went"; fi
expect leaves 0 rmmod soloist_firmware
expect first-choice 0 soloist map detect --output again.toml
if [ -e $dir ]; then fail left "$dir is still there"; else ok left; fi
same trust "$(sed -n 's/^trust = //p' found.toml)" '"exact"'
case $out in *"taken: firmware, exact"*) ok taken ;; *) fail taken "$out" ;; esac

# Every line of both nodes: the same place by what was found and what is true.
lines=$(awk 'BEGIN { srand(7); for (i = 0; i < 500; i++)
	printf "%d ", int(rand() * 33554432) * 64 }')
# shellcheck disable=SC2086
soloist map decode -m "$here/known.toml" $lines | cut -c1-70 >true
# shellcheck disable=SC2086
soloist map decode -m found.toml $lines | cut -c1-70 >found
same lines "$(wc -l <true)" 501
if cmp -s true found; then ok decodes; else fail decodes "$(diff true found | head -5)"; fi
