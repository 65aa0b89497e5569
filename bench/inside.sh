# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh disable=SC2154
# What the scripts share that run in the benchmarks' guests; $top is the top directory.

root=/sys/kernel/config/soloist

# MODULE: loads it, and the machine's map.
load_module() {
	insmod "$1"
	# The map has to come in one write.
	"$top/target/debug/soloist" map show -m qemu-2node --text >/tmp/map
	cat /tmp/map >$root/map || { cat $root/last_cmd_status >&2; exit 1; }
}
