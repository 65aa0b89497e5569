#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# An emulator's memory takes no time: `bench silicon` says that nothing can be measured, with its
# status, and neither it nor `advise` claims anything. A processor that does not say that it is
# emulated is tried, in vain.
set -u
. "$(dirname "$0")/../lib/cli.sh"

if [ "$(uname -m)" != aarch64 ] && ! grep -q TCG /proc/cpuinfo; then
	echo "skip silicon: this guest has a real machine's memory"
	exit
fi
few="--cpus 0-1 --memory 32M --deadline 4 --seconds 2 --blocks 20"

# says NAME WORDS: in what was printed.
says() {
	case $out in
	*"$2"*) ok "$1" ;;
	*) fail "$1" "$out" ;;
	esac
}

# claims NAME WORDS: nothing of it was printed.
claims() {
	case $out in
	*"$2"*) fail "$1" "$out" ;;
	*) ok "$1" ;;
	esac
}

expect nothing 1 soloist bench silicon $few
says told "Nothing can be measured"
claims no-table "SHARED"
expect json 1 soloist bench silicon $few --json
says no-slices '"slices_why"'
says no-pages '"pages_why"'
claims nothing-shown '"shown": true'
claims no-cells '"cells"'
echo "$out" >nothing.json
expect advice 0 soloist advise --from nothing.json
says in-vain "Nothing could be measured here"

# Pages that share an entry of the emulator's own tables look like a bank. QEMU's `max` says that
# it is emulated; cores that it plays after real ones do not.
if [ "$(uname -m)" != aarch64 ] || grep -q '^CPU part.*0x051' /proc/cpuinfo; then
	expect detect 1 soloist map detect --from timing --memory 32M --output none.toml
	says detect-says "this processor is emulated"
	same detect-writes-nothing "$(ls none.toml 2>&1 | grep -c 'No such file')" 1
fi
