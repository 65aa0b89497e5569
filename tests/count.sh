# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# To be sourced by tests that say what holds and count it; sum_up comes last.
passed=0
failed=0

ok() {
	echo "ok $1"
	passed=$((passed + 1))
}

fail() {
	echo "FAIL $1: $2"
	failed=$((failed + 1))
}

# same NAME FOUND WANTED
same() { if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "'$2', not '$3'"; fi; }

# check NAME FOUND OPERATOR WANTED, as test has them; the module's words stand beside.
check() {
	if [ "$2" "$3" "$4" ]; then ok "$1"; else
		fail "$1" "$2 $3 $4 ($(cat /sys/kernel/config/soloist/last_cmd_status 2>/dev/null))"
	fi
}

# holds NAME COMMAND...
holds() {
	what=$1
	shift
	if "$@" >&2; then ok "$what"; else fail "$what" "it does not hold"; fi
}

sum_up() {
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}
