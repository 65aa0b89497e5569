#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the module keeps of each frame lies on the frame's node: as much on one
# node of the machine as on the other, for these are alike.
set -u
. "$(dirname "$0")/../lib/cli.sh"

arrays=$(grep ' sol_array_new' /proc/vmallocinfo)
same arrays "$(echo "$arrays" | grep -c .)" 2
echo "$arrays" | tr ' ' '\n' | awk -F= '$1 == "N0" { a += $2 } $1 == "N1" { b += $2 }
	END { print a + 0, b + 0; exit !(a > 500 && b > 500 && a < b * 1.1 && b < a * 1.1) }' >nodes &&
	ok near-their-frames || fail near-their-frames "pages on each node: $(cat nodes): $arrays"
