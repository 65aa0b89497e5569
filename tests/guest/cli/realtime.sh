#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Real time for real: a command has its class, and its memory locked in colour.
set -u
. "$(dirname "$0")/../lib/cli.sh"
# A shell's priority and policy (sched(7)), its locked and its resident memory.
cat >me <<-'END'
	while read -r key value unit; do
		case $key in VmLck:) locked=$value ;; VmRSS:) resident=$value ;; esac
	done </proc/$$/status
	read -r stat </proc/$$/stat
	set -- ${stat##*) }
	shift 37
	echo "$1 $2 $locked $resident"
END
read -r priority policy locked resident <<-END
	$(soloist run --rt 40 -- sh ./me)
END
same fifo "$priority $policy" "40 1"
# All but what may not be touched is there.
if [ "$locked" -gt 500 ] && [ $((resident * 10)) -ge $((locked * 8)) ]; then ok locked; else
	fail locked "$locked KiB locked, $resident there"
fi
same not-locked "$(soloist run --rt 40 --no-lock -- sh ./me | cut -d' ' -f1-3)" "40 1 0"
expect locked-in-color 0 soloist run --rt 40 --mem 96M --cpus 1 -- soloist verify --self --strict
same deadline "$(soloist run --budget 20ms --deadline 80ms --period 100ms -- sh ./me | cut -d' ' -f1-2)" "0 6"
out=$(soloist run --budget 20ms --period 100ms --cpus 1 -- true 2>&1)
same deadline-pinned $? 2
case $out in *"leave --cpus out"*) ok deadline-pinned-says ;; *) fail deadline-pinned-says "$out" ;; esac
same nothing-left "$(soloist group list --json)" "[]"
