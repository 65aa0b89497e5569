#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the module keeps of each frame lies on the frame's node: as much on one
# node of the machine as on the other, for these are alike.
set -u
. "$(dirname "$0")/../lib/cli.sh"

arrays=$(grep ' sol_array_new' /proc/vmallocinfo)
same arrays "$(echo "$arrays" | grep -c .)" 2
# On arm64 a third of the numbers lie below the memory: one page stands for all of these.
case $(uname -m) in aarch64) parts=3 ;; *) parts=2 ;; esac
echo "$arrays" | tr ' ' '\n' | awk -F= -v parts=$parts '$1 == "N0" { a += $2 } $1 == "N1" { b += $2 }
	END { own = (a + b) / parts * 0.95
		print a + 0, b + 0; exit !(a > 500 && b > 500 && a > own && b > own) }' >nodes &&
	ok near-their-frames || fail near-their-frames "pages on each node: $(cat nodes): $arrays"
