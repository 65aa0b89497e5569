#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What goes wrong is told once, in words, and blames what is to blame.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# said NAME TEXT WORDS: TEXT has WORDS, once, and no errno twice.
said() {
	case $2 in
	*"(os error"*"(os error"*) fail "$1" "errno twice: $2" ;;
	*"$3"*) ok "$1" ;;
	*) fail "$1" "no '$3' in: $2" ;;
	esac
}

# A machine without a PMU: the kernel's words, not "no such file".
if [ ! -d /sys/bus/event_source/devices/cpu/events ]; then
	said event-that-is-not-there "$(soloist guard set --event LLC-misses 2>&1)" "the kernel refused"
fi
said kernel-thread "$(soloist verify 2 2>&1)" "a thread of the kernel"
said typo "$(soloist run --color 4 -- true 2>&1)" "'--colors'"

# Without --cpus: one node, said, and kept there.
report=$(soloist run --json --colors 1 -- sh -c 'grep Cpus_allowed_list /proc/self/status >pinned' 2>&1)
cpus=$(sed 's/.*:[[:space:]]*//' pinned)
node=$(echo "$report" | sed -n 's/.*"nodes":"\([^"]*\)".*/\1/p')
same pinned-to-node "$cpus" "$(cat /sys/devices/system/node/node"$node"/cpulist)"
soloist run --no-pin --colors 1 -- sh -c 'grep Cpus_allowed_list /proc/self/status >roams'
same no-pin "$(sed 's/.*:[[:space:]]*//' roams)" "$(cat /sys/devices/system/cpu/online)"
# The other node, once this one's colours are taken.
soloist group create hog --node "$node" --mode exclusive >/dev/null
other=$(soloist run --json --colors 1 -- true 2>&1 | sed -n 's/.*"nodes":"\([^"]*\)".*/\1/p')
[ "$other" != "$node" ] && [ -n "$other" ] && ok node-with-free-colours ||
	fail node-with-free-colours "on node '$other', node $node is taken"
soloist group rm hog

# A process that ran before it joined.
sleep 100 &
pid=$!
soloist group create late --colors 1 >/dev/null
said joined-late "$(soloist group set late --pid $pid)" "own pages are in colour"

# Down with somebody in a group.
said down-refused "$(soloist down 2>&1)" "late (1 task)"
expect still-loaded 0 test -d $root/groups/late
kill $pid
wait $pid 2>/dev/null
soloist group rm late
