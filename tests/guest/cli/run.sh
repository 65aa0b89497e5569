#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist run` for real: status and signals are passed on, an existing group
# is joined, and nothing is left over.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# Statuses.
expect status 3 soloist run -- sh -c 'exit 3'
expect status-signal 143 soloist run -- sh -c 'kill -TERM $$'
expect status-not-found 127 soloist run -- /no/such/command
expect status-not-executable 126 soloist run -- /etc/passwd
expect misuse-colour 2 soloist run --colors 999, -- true
expect misuse-memory 2 soloist run --mem 100T -- true
expect memory 0 soloist run --mem 8M -- true
# As much as was asked for can be used, though the system has memory in every colour.
if [ -x /usr/bin/python3 ]; then
	expect memory-is-there 0 soloist run --mem 128M --cpus 0 -- /usr/bin/python3 -c 'held = bytearray(118 << 20)'
fi

# A signal for us is for the command.
soloist run -- sh -c 'trap "exit 9" TERM; touch ready; for i in $(seq 100); do sleep 0.1; done' &
run=$!
for i in $(seq 300); do [ -e ready ] || sleep 0.1; done
kill -TERM $run
wait $run
got=$?
[ $got = 9 ] && ok signal-forwarded || fail signal-forwarded "status $got, not 9"

# An existing group is joined and stays; one of our own goes.
expect group-create 0 soloist group create mine --colors 1
expect group-join 0 soloist run --group mine -- soloist verify --self --strict
expect group-join-misuse 2 soloist run --group mine --colors 1 -- true
expect group-stays 0 soloist group show mine
expect group-rm 0 soloist group rm mine
expect group-gone 1 soloist group show mine
left=$(soloist group list --json)
[ "$left" = "[]" ] && ok nothing-left || fail nothing-left "$left"
