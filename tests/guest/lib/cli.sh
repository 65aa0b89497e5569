# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced by tests of the command line.

# Our own copies: the host may build new ones while the guest runs, and nobody's tests must be
# able to run them.
install -m 755 "$(command -v soloist)" "$(command -v soloist-lab)" .
chmod 755 .
PATH=$PWD:$PATH
root=/sys/kernel/config/soloist

ok() { echo "ok $1"; }
fail() { echo "FAIL $1: $2"; }

# machine_here FILE: that machine file, with its memory where this guest's begins.
machine_here() {
	case $(uname -m) in
	aarch64) sed 's/0x80000000$/0xc0000000/; s/0x40000000$/0x80000000/; s/0x0$/0x40000000/' "$1" ;;
	*) cat "$1" ;;
	esac
}

# same NAME FOUND WANTED
same() {
	if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "found '$2', not '$3'"; fi
}

# until_ COMMAND: two minutes at most, for the host may be busy; what it came to.
until_() {
	for i in $(seq 600); do
		eval "$1" >/dev/null 2>&1 && return
		sleep 0.2
	done
	return 1
}

# executes PID NAME: a shell has made it, and is it no longer.
executes() { until_ "[ \"\$(cat /proc/$1/comm)\" = $2 ]"; }

# expect NAME STATUS COMMAND...
expect() {
	name=$1
	want=$2
	shift 2
	out=$("$@" 2>&1)
	got=$?
	if [ $got = "$want" ]; then ok "$name"; else fail "$name" "status $got, not $want: $out"; fi
}
