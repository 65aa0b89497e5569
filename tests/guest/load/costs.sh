#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What may be dear on a large machine is not done more often than it must: the kernel's
# own probes count calls of the module's functions.
set -u
. "$(dirname "$0")/../lib/cli.sh"
tracing=/sys/kernel/tracing
cgroups=/sys/fs/cgroup

for function in sol_cpu_lists_flush sol_member_gather; do
	echo "p:sol/$function soloist:$function" >>$tracing/kprobe_events 2>/dev/null || {
		echo "skip costs: this kernel has no probe for $function"
		exit 0
	}
done
echo 1 >$tracing/events/sol/enable
restore() {
	echo 0 >$tracing/events/sol/enable
	echo >$tracing/kprobe_events
	rmdir $root/groups/costs-* $cgroups/costs-* 2>/dev/null
}
trap restore EXIT

# calls FUNCTION: until now.
calls() {
	awk -v name="$1" '$1 == name { print $2 }' $tracing/kprobe_profile
}

# An assignment of eight bank sets, some of which have frames in lists, some in lists of
# CPUs: these are emptied once, not once for each set.
mkdir $root/groups/costs-a
echo 0-15 >$root/groups/costs-a/bank_set
sh -c "echo 0 >$root/groups/costs-a/tasks; perl -e 'my \$text = \"x\" x (6 << 20)'"
rmdir $root/groups/costs-a
mkdir $root/groups/costs-b
before=$(calls sol_cpu_lists_flush)
echo 8 >$root/groups/costs-b/auto || fail assigns "$(cat $root/last_cmd_status)"
n=$(($(calls sol_cpu_lists_flush) - before))
[ $n -le 1 ] && ok one-flush-for-an-assignment || fail one-flush-for-an-assignment "$n flushes"
rmdir $root/groups/costs-b

# Tasks go from cgroup to cgroup and no group is concerned: nobody looks at all tasks.
mkdir $root/groups/costs-c $cgroups/costs-in $cgroups/costs-1 $cgroups/costs-2
echo 1 >$root/groups/costs-c/bank_set
echo /costs-in >$root/groups/costs-c/cgroup || fail binds "$(cat $root/last_cmd_status)"
sleep 1000 &
pid=$!
before=$(calls sol_member_gather)
for i in 1 2 1 2 1 2 1 2; do
	echo $pid >$cgroups/costs-$i/cgroup.procs
	sleep 0.1
done
n=$(($(calls sol_member_gather) - before))
same moves-beside-groups "$n walks" "0 walks"
# One that a group is concerned by is brought in line without a look at the others.
echo $pid >$cgroups/costs-in/cgroup.procs
until_ "grep -qx $pid $root/groups/costs-c/tasks" && ok joins || fail joins "it does not"
sleep 0.5
n=$(($(calls sol_member_gather) - before))
same a-move-into-a-group "$n walks" "0 walks"
kill $pid
wait $pid 2>/dev/null
rmdir $cgroups/costs-1 $cgroups/costs-2 $cgroups/costs-in
rmdir $root/groups/costs-c

# What counts as available is what the shrinker may take, whatever happened before.
counted() {
	awk '$1 == "nr_kernel_misc_reclaimable" { print $2 }' /proc/vmstat
}
spare() {
	awk '$1 == "listed" { n += $2 } $1 == "kept_reserve" { n -= $2 } END { print n }' $root/stats
}
# The module counts once a second.
soon() {
	for _ in $(seq 40); do
		eval "$1" && return
		sleep 0.25
	done
	return 1
}
# In lists of CPUs frames are listed, and not the shrinker's: of four CPUs 800 at most.
near() {
	[ $(($(spare) - $(counted))) -ge -16 ] && [ $(($(spare) - $(counted))) -le 800 ]
}
echo all >$root/lists
soon near && ok counts-lists || fail counts-lists "$(counted) of $(spare)"
mkdir $root/groups/costs-d
echo 2 >$root/groups/costs-d/bank_set
echo 16M >$root/groups/costs-d/reserve
soon near && ok counts-reserve || fail counts-reserve "$(counted) of $(spare)"
sh -c "echo 0 >$root/groups/costs-d/tasks; perl -e 'my \$text = \"x\" x (6 << 20)'"
soon near && ok counts-after-use || fail counts-after-use "$(counted) of $(spare)"
rmdir $root/groups/costs-d
echo drain >$root/lists
soon "[ \"\$(counted)\" = 0 ]" && ok counts-none || fail counts-none "$(counted) of $(spare)"
