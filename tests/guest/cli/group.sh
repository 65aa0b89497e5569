#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist group`, `rule` and `doctor` for real: what they set is what the
# kernel says, and a refusal comes with the kernel's words.
set -u
. "$(dirname "$0")/../lib/cli.sh"

soloist group create a --bank-sets 2-3 --exhaust spill --reserve 1M >/dev/null
same create-sets "$(cat $root/groups/a/bank_set)" 2-3
same create-exhaust "$(cat $root/groups/a/exhaust)" spill
soloist group set a --exhaust grow >/dev/null
same set-exhaust "$(cat $root/groups/a/exhaust)" grow
same set-keeps-colours "$(cat $root/groups/a/bank_set)" 2-3

case $(soloist group set a --reserve 1T 2>&1) in
*"reserve: 1 TiB asked, the group's colours have "*" MiB in all"*) ok sizes-as-written ;;
*) fail sizes-as-written "$(soloist group set a --reserve 1T 2>&1)" ;;
esac

soloist group set a --mode exclusive >/dev/null
why=$(soloist group create b --bank-sets 3 2>&1)
same refused $? 1
case $why in
*"the kernel refused: "*) ok refused-in-words ;;
*) fail refused-in-words "$why" ;;
esac
[ -d $root/groups/b ] && fail refused-leaves-nothing "b is there" || ok refused-leaves-nothing

same no-colours-yet "$(soloist group create plain | tail -1)" \
	"group plain: bank sets none yet, LLC colours none yet, shareable"
soloist group set plain --bank-sets 4 >/dev/null
same free-in-the-others "$(soloist group list | awk '$1 == "plain" { print $2, $3 }')" "4 any"
soloist group rm plain

# A change is made whole or not at all; automatic colours are shared if one says so.
soloist group set a --exhaust spill --text shared --reserve 1T 2>/dev/null
same refused-change $? 1
same refused-changes-nothing "$(cat $root/groups/a/exhaust) $(cat $root/groups/a/text)" "grow private"
soloist group create many --colors 2 --mode shareable >/dev/null
same automatic-and-shared "$(cat $root/groups/many/mode)" shareable
soloist group set many --bank-sets 2 --mode exclusive 2>/dev/null
same taken-colours-refused "$? $(cat $root/groups/many/mode)" "1 shareable"
soloist group rm many

# A signal leaves the whole group or none of it.
soloist group create cut --bank-sets 4 --reserve 48M >/dev/null 2>&1 &
pid=$!
while [ ! -d $root/groups/cut ] && kill -0 $pid 2>/dev/null; do :; done
kill $pid
wait $pid
case "$? $(cat $root/groups/cut/reserve 2>&1)" in
"0 50331648" | "143 50331648") ok signal-came-late ;;
"143 "*"No such file"*) ok signal-leaves-nothing ;;
*) fail signal-leaves-nothing "$(ls $root/groups) $(cat $root/groups/cut/reserve)" ;;
esac
[ ! -d $root/groups/cut ] || rmdir $root/groups/cut

# Colours that are listed are shareable, those of `run` too; what the recipe of a real-time
# task makes is for no other group.
same run-lists-shareable "$(soloist run --node 1 -- soloist group list | awk '/^run-/ { print $5 }')" shareable
same run-counts-exclusive "$(soloist run --colors 1 -- soloist group list | awk '/^run-/ { print $5 }')" exclusive
eval "$(grep '^soloist group create rt ' "$(dirname "$0")/../../../docs/how-to/recipes.md")" >/dev/null
soloist group create intruder --node 1 2>/dev/null
same recipe-keeps-others-out "$? $(ls $root/groups | tr '\n' ' ')" "1 a rt "
soloist group rm rt

# A process that runs already: what it has stays where it is, and is shown.
sleep 100 &
pid=$!
soloist group set a --pid $pid >/dev/null
same joined "$(cat $root/groups/a/tasks)" $pid
soloist verify $pid --strict >/dev/null
same joined-late-is-shown $? 1
soloist group rm --force a
same rm-moves-out "$(ls $root/groups)" ""
kill $pid

# A rule colours a program when it is executed.
cp "$(command -v sleep)" doze
soloist rule add nap --path "$PWD/doze" --colors 1
same rule-enabled "$(cat $root/rules/nap/enabled)" 1
./doze 100 &
pid=$!
executes $pid doze
soloist verify $pid --strict >/dev/null
same rule-colours $? 0
made=$(soloist group list | sed -n 's/^\(nap#[0-9]*\) .*/\1/p')
same rule-group-shown "$(soloist group show "$made" | sed -n 's/^tasks *//p')" $pid
kill $pid
soloist rule disable nap
same rule-disabled "$(cat $root/rules/nap/enabled)" 0
soloist rule rm nap
same rule-rm "$(ls $root/rules)" ""
soloist rule add bad --path relative 2>/dev/null
same rule-refused $? 1

# Who is not root is told that root sees more, not that there is nothing.
case $(setpriv --reuid 65534 --regid 65534 --clear-groups ./soloist doctor) in
*"none is loaded"*) fail doctor-of-a-user "it says that no map is loaded" ;;
*"whether one is loaded, root alone can see"*) ok doctor-of-a-user ;;
*) fail doctor-of-a-user "$(setpriv --reuid 65534 --regid 65534 --clear-groups ./soloist doctor)" ;;
esac

# What only loading can do is not passed over in silence.
expect up-module-loaded 2 soloist up --module /no/such.ko
expect up-param-loaded 2 soloist up --param mmap_abi=1

same map-list-loaded "$(soloist map list | grep -c '  loaded  ')" 1
same doctor-map "$(soloist doctor --json | grep -c 'holds all .* of this machine')" 1
