#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A mask where a list belongs is refused, with the list that it means, in every
# file of the control interface that takes one; nothing is changed.
set -u
. "$(dirname "$0")/../lib/cli.sh"

soloist group create a --bank-sets 4-5 >/dev/null

# masked FILE TEXT LIST
masked() {
	before=$(cat $root/groups/a/bank_set $root/groups/a/bandwidth)
	if echo "$2" >$root/groups/a/"$1" 2>/dev/null; then
		fail "$1-$2" "taken: $(cat $root/groups/a/bank_set)"
		return
	fi
	case $(cat $root/last_cmd_status) in
	*": a mask; write $3"*) same "$1-$2" "$(cat $root/groups/a/bank_set $root/groups/a/bandwidth)" "$before" ;;
	*) fail "$1-$2" "$(cat $root/last_cmd_status)" ;;
	esac
}

for file in bank_set dram_bank llc_color; do
	masked $file 0xf 0-3
	masked $file 0X6 1-2
	masked $file 2,0x3 0-1
done
masked node 0x1 0
masked auto '1 node=0x3' 0-1
masked bank_set 00000003 0-1
masked bandwidth '1000000 cpus=0x3' 0-1
expect flag 2 soloist group set a --bank-sets 0x3
soloist group rm a
