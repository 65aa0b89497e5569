# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced by tests of the trace.

root=/sys/kernel/config/soloist
tracing=/sys/kernel/tracing
[ -d $tracing/events ] || mount -t tracefs tracefs $tracing

# An event that goes on as long as a CPU is there, as in guard/guard.h.
running=cpu-clock
[ "$(uname -m)" != aarch64 ] || running=cpu-cycles

# check NAME 1|... WHY
check() {
	if [ "$2" = 1 ]; then echo "ok $1"; else echo "FAIL $1: $3"; fi
}
