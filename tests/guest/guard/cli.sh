#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist guard` and `soloist run --bandwidth` for real.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# expect NAME STATUS PATTERN COMMAND...
expect() {
	name=$1 want=$2 pattern=$3
	shift 3
	out=$("$@" 2>&1)
	got=$?
	if [ $got = "$want" ] && echo "$out" | grep -q "$pattern"; then
		echo "ok $name"
	else
		echo "FAIL $name: status $got, not $want: $out"
	fi
}

expect off 0 '' soloist guard off
expect not-set 1 'r_min is not set' soloist guard set 1:1MB/s
expect set 0 '' soloist guard set --event page-faults --period 10000 --r-min 100MB/s 0-1:10MB/s
expect status 0 '10 MB/s' soloist guard status
expect json 0 '"used_bytes"' soloist guard status --json
expect openmetrics 0 '^soloist_guard_used_bytes_total{cpu="1"} [0-9]' soloist metrics
expect watch 0 'MB/s' soloist guard status --watch 1 -n 2
expect too-much 1 'more than the guaranteed 99 MB/s' soloist guard set 2:90MB/s
expect no-cpu 2 'no CPU 77' soloist guard set 77:1MB/s
expect zero 2 'no rate' soloist guard set 2:0
expect misuse 2 'nothing to set' soloist guard set
expect core-off 0 '' soloist guard set 0:off
expect run-reserved 1 'reservation of its own' soloist run --cpus 1 --bandwidth 5MB/s -- true
expect run 0 'group=run-' soloist run --cpus 2-3 --bandwidth 20MB/s -- cat $root/guard/cpu3/bandwidth
expect run-gives-back 0 '^off$' cat $root/guard/cpu3/bandwidth
expect run-needs-cpus 2 'cpus' soloist run --bandwidth 20MB/s -- true
expect group 0 '20MB/s on CPUs 2-3$' soloist group create g --bandwidth 20MB/s --cpus 2-3
expect group-less 0 '10MB/s on CPUs 2-3$' soloist group set g --bandwidth 10MB/s
expect group-moves 0 '10MB/s on CPUs 3$' soloist group set g --cpus 3
expect group-moved 0 '^off$' cat $root/guard/cpu2/bandwidth
expect group-too-much 1 'more than the guaranteed' soloist group set g --bandwidth 200MB/s
expect group-stays 0 'bandwidth *10MB/s on CPUs 3$' soloist group show g
expect group-off 0 'group g' soloist group set g --bandwidth off
expect group-needs-cpus 2 'give --cpus LIST too' soloist group set g --bandwidth 5MB/s
expect group-gone 0 '' soloist group rm g
expect rmin 0 'r_min' soloist guard rmin --machine core2quad-q8400
expect before-clock 0 '' soloist guard off
expect clock 0 '' soloist guard set --event cpu-clock --r-min 100MB/s
expect clock-too-slow 1 'counts time' soloist run --cpus 2 --bandwidth 10MB/s -- true
expect clock-off 0 '' soloist guard off
expect clock-gone 1 'r_min is not set' soloist run --cpus 2 --bandwidth 10MB/s -- true
expect off-again 0 '' soloist guard off
expect all-off 0 '^off$' cat $root/guard/cpu1/bandwidth
printf 'r_min 0\nperiod_us 1000\n' >$root/guard/settings
