# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# What the benchmarks that run in guests share; to be sourced in the top directory.

make -s -C bench
case " $* " in *-arm64*) make -s -C bench ARCH=arm64 ;; esac
mkdir -p build/logs

# Whatever else changed makes the commit a dirty one.
commit=$(git rev-parse --short HEAD 2>/dev/null || echo -)
[ -z "$(git status --porcelain -uno -- . ':!evidence/history.tsv' 2>/dev/null)" ] || commit=$commit-dirty
host="$(nproc) x $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"

# BENCHMARK KERNEL: the `FIGURE VALUE` lines of its input become evidence/history.tsv's.
record() {
	awk -v OFS='\t' -v date="$(date -u +%F)" -v commit="$commit" -v version="$(scripts/version)" \
		-v host="$host" -v bench="$1" -v kernel="$(readlink "build/kernels/$2")" \
		'{ print date, commit, version, host, bench, kernel, $1, $2 }' >>evidence/history.tsv
}

# The module of KERNEL.
module() {
	echo "build/kernel/$(readlink "build/kernels/$1")/soloist.ko"
}

# LOG KERNEL CPUS ARGUMENTS... -- COMMAND...: in a guest, its output in LOG. The
# CPU ($cpu) is the same everywhere, so that figures of different hosts can be compared.
guest() {
	log=$1 kernel=$2 cpus=$3
	shift 3
	case $kernel in
	*-arm64*) set -- --machine qemu-arm64-2node --cpu "${cpu:-max,pauth-impdef=on}" "$@" ;;
	*) set -- --machine qemu-2node --cpu "${cpu:-qemu64,+erms}" "$@" ;;
	esac
	target/debug/soloist vm run --kernel "$kernel" --cpus "$cpus" "$@" >"$log" 2>"$log.err" && return
	echo "$kernel failed:"
	tail -n 20 "$log.err"
	exit 1
}

# SCRIPT LOG KERNEL CPUS ICOUNT ARGUMENTS...: a script that measures with and without
# the module, in a guest.
inside() {
	script=$1 log=$2 kernel=$3 cpus=$4 icount=$5
	shift 5
	# shellcheck disable=SC2086
	guest "$log" "$kernel" "$cpus" $icount --no-module --timeout 3600 -- \
		"$script" "$(module "$kernel")" "$@"
}

# Median, first and third quartile of the numbers on its input, one a line.
quartiles() {
	sort -n | awk '{ v[NR] = $1 } END {
		printf "%.3f %.3f %.3f\n", v[int(NR / 2) + 1], v[int(NR / 4) + 1], v[NR - int(NR / 4)] }'
}
