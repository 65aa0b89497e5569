# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# What the benchmarks that run in guests share; to be sourced in the top directory.

make -s -C bench
mkdir -p build/logs

# The module of KERNEL.
module() {
	echo "build/kernel/$(readlink "build/kernels/$1")/soloist.ko"
}

# LOG KERNEL CPUS ARGUMENTS... -- COMMAND...: in a guest, its output in LOG. The
# CPU is the same everywhere, so that figures of different hosts can be compared.
guest() {
	log=$1 kernel=$2 cpus=$3
	shift 3
	target/debug/soloist vm run --kernel "$kernel" --machine qemu-2node --cpus "$cpus" \
		--cpu qemu64,+erms "$@" >"$log" 2>"$log.err" && return
	echo "$kernel failed:"
	tail -n 20 "$log.err"
	exit 1
}
