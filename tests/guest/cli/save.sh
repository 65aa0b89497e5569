#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `soloist save` and `apply` for real: what was there comes back after the
# module was taken out, once; what is refused changes nothing.
set -u
. "$(dirname "$0")/../lib/cli.sh"

# What nobody has set is not saved; what is set is, also before the rate that a
# reservation needs.
if soloist save - | grep -q '^\[guard\]'; then fail nothing-set "$(soloist save -)"; else ok nothing-set; fi
soloist guard set --event page-faults --line 64 >/dev/null
soloist save "$PWD/line.toml" >/dev/null
soloist guard set --event LLC-misses >/dev/null
expect apply-line 0 soloist apply "$PWD/line.toml"
same line "$(sed -n '/^event/p; /^line/p' $root/guard/settings | tr '\n' ' ')" "event page-faults line 64 "
same line-stays "$(soloist apply "$PWD/line.toml")" "nothing to change"

soloist group create video --bank-sets 2-3 --mode exclusive --exhaust spill --text shared --reserve 1M >/dev/null
soloist group create batch --bank-sets 4-5 --llc 0-1 >/dev/null
soloist rule add nap --path /usr/bin/nap --colors 2
soloist guard set --event page-faults --r-min 100MB/s --peak 200MB/s 0:10MB/s
expect save 0 soloist save "$PWD/saved.toml"
same nothing-to-change "$(soloist apply "$PWD/saved.toml")" "nothing to change"

# Writes that are counted no more are not saved.
soloist guard set 0:off >/dev/null
soloist guard set --write-event page-faults --write-r-min 50MB/s 0:10MB/s:write=5MB/s >/dev/null
soloist guard set --write-event none --write-r-min 0 >/dev/null
expect save-without-writes 0 soloist save "$PWD/reads.toml"
if cmp -s saved.toml reads.toml; then ok reads-alone; else fail reads-alone "$(diff saved.toml reads.toml)"; fi

# As a reboot would: everything goes.
soloist guard off
soloist group rm video batch
soloist rule rm nap
expect dry-run 0 soloist apply --dry-run "$PWD/saved.toml"
same dry-run-changes-nothing "$(ls $root/groups)" ""
expect apply 0 soloist apply "$PWD/saved.toml"
same sets "$(cat $root/groups/video/bank_set)" 2-3
same mode "$(cat $root/groups/video/mode)" exclusive
same exhaust "$(cat $root/groups/video/exhaust)" spill
same text "$(cat $root/groups/video/text)" shared
same reserve "$(cat $root/groups/video/reserve)" 1048576
same llc "$(cat $root/groups/batch/llc_color)" 0-1
same rule "$(cat $root/rules/nap/enabled)" 1
same reserved "$(cut -d' ' -f1 $root/guard/cpu0/bandwidth)" 10000000
soloist save "$PWD/again.toml" >/dev/null
if cmp -s saved.toml again.toml; then ok same-again; else fail same-again "$(diff saved.toml again.toml)"; fi

# The second group wants what the first has for itself alone.
sed 's/bank_sets = "4-5"/bank_sets = "3-4"/; s/exhaust = "spill"/exhaust = "grow"/' saved.toml >clash.toml
soloist apply "$PWD/clash.toml" >/dev/null 2>&1
same clash-refused $? 2
same clash-changes-nothing "$(cat $root/groups/video/exhaust) $(cat $root/groups/batch/bank_set)" "spill 4-5"

# Two exclusive groups swap their colours: neither could be the first.
sed 's/bank_sets = "2-3"/bank_sets = "6-7"/; s/bank_sets = "4-5"/bank_sets = "2-3"/; s/"shareable"/"exclusive"/' saved.toml >first.toml
sed 's/bank_sets = "2-3"/bank_sets = "x"/; s/bank_sets = "6-7"/bank_sets = "2-3"/; s/"x"/"6-7"/' first.toml >second.toml
expect before-swap 0 soloist apply "$PWD/first.toml"
expect swap 0 soloist apply "$PWD/second.toml"
same swapped "$(cat $root/groups/video/bank_set $root/groups/batch/bank_set $root/groups/video/mode $root/groups/batch/mode | tr '\n' ' ')" \
	"2-3 6-7 exclusive exclusive "
expect swap-back 0 soloist apply "$PWD/first.toml"
expect as-saved 0 soloist apply "$PWD/saved.toml"

# What the file does not name stays, unless told otherwise.
soloist group create other --bank-sets 7 >/dev/null
soloist apply "$PWD/saved.toml" | grep -q groups/other && ok others-named || fail others-named ""
soloist apply --prune "$PWD/saved.toml" >/dev/null
same pruned "$(ls $root/groups | tr '\n' ' ')" "batch video "
soloist guard off
soloist group rm video batch
soloist rule rm nap

# Reservations and cgroups change hands, and what can be reserved with them. A
# rate that a group's processors share unevenly is true as it stands.
whole() {
	cat <<-END
		[guard]
		event = "page-faults"
		r_min = "$1"
		[cpus]
		0 = "5MB/s"
		[groups.left]
		bank_sets = "2"
		bandwidth = "20MB/s"
		cpus = "$2"
		cgroup = "$3"
		[groups.right]
		bank_sets = "3"
		bandwidth = "10MB/s"
		cpus = "$4"
		cgroup = "$5"
	END
}
mkdir -p /sys/fs/cgroup/left /sys/fs/cgroup/right
whole 100000000 1 /left 2-3 /right >one.toml
whole 50000000 1-3 /right 0 /left | sed '/\[cpus\]/,+1d' >two.toml
expect hands 0 soloist apply "$PWD/one.toml"
same hands-true "$(soloist apply "$PWD/one.toml")" "nothing to change"
expect hands-change 0 soloist apply --prune "$PWD/two.toml"
same hands-changed-true "$(soloist apply "$PWD/two.toml")" "nothing to change"
same hands-are "$(cat $root/groups/left/bandwidth $root/groups/right/cgroup)" "19999998 reclaim=1 cpus=1-3
/left"
expect hands-back 0 soloist apply --prune "$PWD/one.toml"
sed 's/^0 = .*/0 = "90MB\/s"/' one.toml >much.toml
soloist apply "$PWD/much.toml" >/dev/null 2>&1
same hands-refused "$? $(soloist apply "$PWD/one.toml")" "2 nothing to change"
soloist guard off
soloist group rm left right

# One group of two cgroups, one of which comes later.
soloist group create both --bank-sets 2 --cgroup /right --cgroup /left >/dev/null
soloist group set both --cgroup /left --cgroup /right --cgroup /comes --later >/dev/null 2>&1
same both-bound "$(sort $root/groups/both/cgroup | tr '\n' ' ')" "/comes /left /right "
soloist save "$PWD/both.toml" >/dev/null
same both-true "$(soloist apply "$PWD/both.toml" 2>/dev/null)" "nothing to change"
soloist group rm both
expect both-apply 0 soloist apply "$PWD/both.toml"
same both-again "$(sort $root/groups/both/cgroup | tr '\n' ' ')" "/comes /left /right "
sleep 1000 &
echo $! >/sys/fs/cgroup/right/cgroup.procs
grep -qx $! $root/groups/both/members && ok both-joined || fail both-joined "$! is not in it"
kill $!
wait $! 2>/dev/null
soloist group rm both
rmdir /sys/fs/cgroup/left /sys/fs/cgroup/right

# A group that goes leaves its colours to one that takes them for itself alone.
soloist group create old --bank-sets 2-3 --mode exclusive --reserve 1M >/dev/null
printf '[groups.new]\nbank_sets = "3"\nmode = "exclusive"\n' >heir.toml
expect heir 0 soloist apply --prune "$PWD/heir.toml"
same heir-alone "$(ls $root/groups) $(cat $root/groups/new/mode)" "new exclusive"
soloist group rm new
