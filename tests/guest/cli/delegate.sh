#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Delegation without root: a user who owns a cgroup below one that is bound makes
# cgroups there, and may divide its tasks among those that root has bound to
# parts of the colours; it gets no others, and stays in.
set -u
. "$(dirname "$0")/../lib/cli.sh"

tree=/sys/fs/cgroup
user=$tree/user-1000
# What systemd gives a user with Delegate=yes.
mkdir -p $user
chown 1000:1000 $user $user/cgroup.procs $user/cgroup.subtree_control
soloist group create ann --bank-sets 0-3 --cgroup /user-1000 >/dev/null
# It need not be there yet: the user makes it.
soloist group create ann.left --bank-sets 0-1 --cgroup /user-1000/left --later >/dev/null

# as_user COMMAND: typed by the user, in a cgroup of the user's.
as_user() {
	sh -c 'echo 0 >"$1"/cgroup.procs && exec setpriv --reuid 1000 --regid 1000 --clear-groups \
		--inh-caps=-all -- sh -c "$2"' sh $user "$1" 2>&1
}
# sleeper CGROUP: a program of the user's there; its pid.
sleeper() {
	as_user "echo 0 >$user/$1/cgroup.procs && { sleep 300 >/dev/null 2>&1 & echo \$!; }"
}
# in_color NAME PID GROUP SETS
in_color() {
	soloist verify --strict "$2" >said 2>&1
	same "$1" $? 0
	grep -q "^group $3: bank sets $4," said && ok "$1-group" || fail "$1-group" "$(cat said)"
}

same makes-cgroups "$(as_user "mkdir -p $user/mine/inner $user/left")" ""
for place in mine/inner:ann:0-3 left:ann.left:0-1; do
	cgroup=${place%%:*}
	group=${place#*:}
	pid=$(sleeper $cgroup)
	executes "$pid" sleep
	in_color "in-$(basename $cgroup)" "$pid" "${group%:*}" "${group#*:}"
	kill "$pid"
done

# Neither a way out nor to other colours.
mkdir -p $tree/elsewhere
chmod 777 $tree/elsewhere
chmod 666 $tree/elsewhere/cgroup.procs
same stays-in "$(as_user "echo 0 >$tree/elsewhere/cgroup.procs; cat /proc/self/cgroup" | tail -n 1)" 0::/user-1000
for file in groups/ann/bank_set groups/ann/cgroup groups/ann/tasks; do
	case $(as_user "echo 4 >$root/$file") in
	*denied*) ok "no-$(basename $file)" ;;
	*) fail "no-$(basename $file)" "was written" ;;
	esac
done
case $(as_user "unshare -Ur sh -c 'echo 4-5 >$root/groups/ann/bank_set'") in
*denied* | *permitted*) ok no-root-of-its-own ;;
*) fail no-root-of-its-own "was written" ;;
esac
same still "$(cat $root/groups/ann/bank_set)" 0-3

soloist group rm ann.left ann
sleep 1
rmdir $user/mine/inner $user/mine $user/left $user $tree/elsewhere
