#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist down` beside a real-time thread that spins: it says who makes it wait. And
# `soloist up` beside another: both find the module loaded.
set -u
. "$(dirname "$0")/../lib/cli.sh"
map=$(mktemp)
cat $root/map >"$map"

# All of this on another CPU: with real-time locks a thread of the kernel with less priority than
# the spinner delivers the alarms of the CPU.
taskset -pc 0 $$ >/dev/null
timeout 8 chrt -f 50 taskset -c 1 sh -c 'while :; do :; done' &
sleep 0.5
out=$(soloist down 2>&1)
same down $? 0
case $out in
*"keeps CPU 1 without a pause"*"module: unloaded"*) ok spinner-said ;;
*) fail spinner-said "$out" ;;
esac
wait
insmod "$MODULE" && cat "$map" >$root/map
out=$(soloist down 2>&1)
same quiet "$out" "module: unloaded"

# The program finds a module that was built in the tree that it lies in.
built=build/kernel/$(uname -r)
mkdir -p kernel core "$built" && : >kernel/Kbuild && cp "$MODULE" "$built/soloist.ko"
machine_here "$(dirname "$0")/plan.toml" >machine.toml
for i in 1 2 3 4 5; do
	soloist up --machine machine.toml >other 2>&1 &
	soloist up --machine machine.toml >one 2>&1
	one=$?
	wait $!
	other=$?
	[ "$one $other" = "0 0" ] || break
	soloist down >/dev/null
done
same both-up "$one $other" "0 0"
[ "$one $other" = "0 0" ] || sed 's/^/# /' one other
soloist down >/dev/null
insmod "$MODULE" && cat "$map" >$root/map
rm -f "$map"
