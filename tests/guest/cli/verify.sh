#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist verify` for real: whatever way the colours were given, every page
# of the process' own is in colour; children and threads too.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# Every page of its own in colour, seen from inside and from outside.
expect verify-self 0 soloist run --colors 2 -- soloist verify --self --strict
expect verify-bank-colour 0 soloist run --colors 3, -- soloist verify --self --strict
expect verify-bank-and-llc 0 soloist run --bank-sets 4-5 --llc 0-3 -- soloist verify --self --strict
expect verify-llc-auto 0 soloist run --colors 2 --llc 2 -- soloist verify --self --strict
expect verify-node 0 soloist run --node 1 -- soloist verify --self --strict
expect verify-child 0 soloist run --colors 1 -- sh -c 'soloist verify $$ --strict && soloist verify --self --strict'

if [ -x /usr/bin/python3 ]; then
	expect verify-python-threads 0 soloist run --colors 2 -- /usr/bin/python3 -c '
import os, subprocess, threading, time
held = []
def work():
    held.append(bytearray(1 << 20))
    time.sleep(30)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
while len(held) < 3:
    time.sleep(0.1)
done = subprocess.run(["soloist", "verify", str(os.getpid()), "--strict"])
os._exit(done.returncode)'
fi

# The picture has all of its pages; only pages in colour are blue.
expect verify-svg 0 soloist run --colors 2 -- soloist verify --self --strict --summary --svg /tmp/pages.svg
in_color=$(sed -n 's/.*: \([0-9]*\) pages*, in colour<.*/\1/p' /tmp/pages.svg | awk '{ n += $1 } END { print n + 0 }')
grep -q ": $in_color of [1-9][0-9]* pages in colour" /tmp/pages.svg && ok verify-svg-pages || fail verify-svg-pages "$in_color: $(grep -m1 'in colour' /tmp/pages.svg)"

# Colours on the node of the processors.
nodes=$(soloist run --cpus 0 --colors 1 -- soloist verify --self --json |
	sed -n '/"by_node"/,/}/p' | grep -c '^ *"[0-9]*":')
[ "$nodes" = 1 ] && ok verify-one-node || fail verify-one-node "pages on $nodes nodes"
