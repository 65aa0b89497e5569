#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist top`, `metrics`, `events` for real: what they say is what happened.
set -u
. "$(dirname "$0")/../lib/cli.sh"

soloist group create seen --colors 1 --exhaust spill >/dev/null
soloist events --interval 1 >events &
events=$!
# It tells what is new since its first look: groups come until it has looked.
for i in $(seq 60); do
	grep -q made events && break
	mkdir "$root/groups/mark$i"
	sleep 1
done
rmdir $root/groups/mark*
# More than its colours hold: some of it is spilled.
one=$(awk '/^capacity/ { print int($2 / 1048576) }' $root/groups/seen/stats)
soloist run --group seen -- sh -c "head -c $((one + 8))m /dev/zero | tail -c $((one + 4))m >/dev/null" 2>/dev/null
spilled='^..:..:..Z seen: [0-9]* pages handed out of colour'
until_ 'grep "$spilled" events'
grep -q "$spilled" events && ok event-spilled || fail event-spilled "$(cat events)"
kill $events
wait $events 2>/dev/null

# A command that is over between two looks: the module tells what it lacked.
tracing=/sys/kernel/tracing
[ -d $tracing/events ] || mount -t tracefs tracefs $tracing
soloist events --interval 8 >events 2>why &
events=$!
until_ '[ -e $tracing/instances/soloist-$events ]'
soloist run --colors 1 --exhaust spill -- sh -c "head -c $((one + 8))m /dev/zero | tail -c $((one + 4))m >/dev/null" 2>/dev/null
short='^..:..:..Z run.*: [0-9]* pages handed out of colour'
until_ 'grep "Z run.*gone" events'
grep -q "$short" events && ok event-short || fail event-short "$(cat events why)"
kill -INT $events
wait $events
same events-end $? 0
same events-trace-gone "$(ls $tracing/instances)" ""

spilled=$(awk '/^spilled/ { print $2 }' $root/groups/seen/stats)
soloist metrics >metrics
same metrics-spilled "$(sed -n 's/^soloist_group_spilled_total{group="seen"} //p' metrics)" "$spilled"
same metrics-end "$(tail -n 1 metrics)" "# EOF"
printf 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n' | soloist metrics --http | tr -d '\r' >answer
same http-status "$(head -n 1 answer)" "HTTP/1.1 200 OK"
same http-length "$(sed -n 's/^Content-Length: //p' answer)" "$(sed '1,/^$/d' answer | wc -c)"

# A coloured task, and one that a rule coloured, in one table.
cp "$(command -v sleep)" doze
soloist rule add nap --path "$PWD/doze" --colors 1
./doze 1000 &
doze=$!
soloist run --group seen -- sleep 1000 &
run=$!
until_ 'soloist top >top; grep "^seen .*100.0 %" top && grep "^nap#" top'
same table-once "$(grep -c ^GROUP top)" 1
grep -q '^seen .*100.0 %' top && ok top-in-colour || fail top-in-colour "$(cat top)"
soloist metrics >metrics
own=$(sed -n 's/^soloist_group_own{group="seen"} //p' metrics)
same metrics-in-colour "$(sed -n 's/^soloist_group_own_in_color{group="seen"} //p' metrics)" "$own"
[ "${own:-0}" -gt 0 ] && ok metrics-own || fail metrics-own "$(grep soloist_group_own metrics)"
grep -q '^nap#' top && ok top-implicit || fail top-implicit "$(cat top)"
kill $doze $run
wait
soloist rule rm nap
soloist group rm seen

# Who may not see colours is told so, not shown an empty table.
soloist group create seen --colors 1 >/dev/null
for look in "top -n 1" metrics "group list" "save -" "verify 1" "run -- true"; do
	# shellcheck disable=SC2086 # words
	why=$(setpriv --reuid 65534 --regid 65534 --clear-groups ./soloist $look 2>&1)
	got="$? $why"
	case $got in
	"1 soloist: reading "*" needs root (CAP_SYS_ADMIN): run it with sudo") ok "nobody-${look%% *}" ;;
	*) fail "nobody-${look%% *}" "$got" ;;
	esac
done
soloist group rm seen
