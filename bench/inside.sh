# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh disable=SC2154
# What the scripts share that run in the benchmarks' guests; $top is the top directory.

root=/sys/kernel/config/soloist
# Where the programs are, and whose map the guest has.
case $(uname -m) in
aarch64) bench=$top/build/arm64/bench machine=qemu-arm64-2node ;;
*) bench=$top/build/bench machine=qemu-2node ;;
esac

# MODULE: loads it, and the machine's map.
load_module() {
	insmod "$1"
	# The map has to come in one write.
	soloist map show -m $machine --text >/tmp/map
	cat /tmp/map >$root/map || { cat $root/last_cmd_status >&2; exit 1; }
}
