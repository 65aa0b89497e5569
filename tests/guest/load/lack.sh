#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A kernel that lacks a row of the module's table: a needed one is refused by
# name; an optional one is told in the kernel log, in features, and by doctor.
# Needs: MODULE, and the module loaded with a map, which we put back at the end.
set -u
. "$(dirname "$0")/../lib/cli.sh"
map=$(mktemp)
cat $root/map >"$map"

# However we end, the next test finds the module as we did.
restore() {
	[ -d $root ] && rmmod soloist
	insmod "$MODULE"
	cat "$map" >$root/map
	rm -f "$map"
}
trap restore EXIT

# The value of KEY in features.
feature() {
	awk -v key="$1" '$1 == key { print $2 }' $root/features
}

same all-there "$(feature hooks) $(feature lacks)" "ok -"
doctor=$(soloist doctor 2>&1 | grep ' hooks ' | tr A-Z a-z)
case $doctor in
*functions*) ok doctor-all-there ;;
*) fail doctor-all-there "$doctor" ;;
esac
rmmod soloist

# What every kernel has: those for clouds are built without memory failures.
for name in handle_mm_fault folio_isolate_lru task_newtask alloc_context.nodemask; do
	dmesg -C
	if insmod "$MODULE" lack=$name 2>/dev/null; then
		fail needed-$name "it loads"
		rmmod soloist
	elif dmesg | grep -q "soloist: .*'$name'.* is needed: [a-z]"; then
		ok needed-$name
	else
		fail needed-$name "$(dmesg | grep soloist)"
	fi
done

dmesg -C
insmod "$MODULE" lack=ksm_madvise,alloc_migration_target || fail optional-loads "refused"
same optional-features "$(feature hooks) $(feature lacks)" "partial alloc_migration_target,ksm_madvise"
for name in ksm_madvise alloc_migration_target; do
	dmesg | grep -q "soloist: .*'$name'.*: [a-zA-Z]" && ok optional-log-$name ||
		fail optional-log-$name "$(dmesg | grep soloist)"
done
doctor=$(soloist doctor 2>&1)
echo "$doctor" | grep -q 'lacks alloc_migration_target, ksm_madvise' && ok optional-doctor ||
	fail optional-doctor "$doctor"
grep -q '^ksm_madvise' /sys/kernel/tracing/enabled_functions 2>/dev/null &&
	fail optional-unhooked "it is hooked" || ok optional-unhooked
rmmod soloist

# A hook that would misread what it is given is left out.
insmod "$MODULE" lack=migration_target_control.gfp_mask || fail layout-loads "refused"
same layout-features "$(feature hooks) $(feature lacks)" \
	"partial alloc_migration_target,migration_target_control.gfp_mask"
grep -q '^alloc_migration_target ' /sys/kernel/tracing/enabled_functions 2>/dev/null &&
	fail layout-unhooked "it is hooked" || ok layout-unhooked
rmmod soloist

# There, but nothing that ftrace can hook.
dmesg -C
if insmod "$MODULE" untraced=handle_mm_fault 2>/dev/null; then
	fail untraced-needed "it loads"
	rmmod soloist
elif dmesg | grep -q "soloist: .*'handle_mm_fault' can't be traced, and is needed: [a-z]"; then
	ok untraced-needed
else
	fail untraced-needed "$(dmesg | grep soloist)"
fi
dmesg -C
insmod "$MODULE" untraced=alloc_migration_target || fail untraced-loads "refused"
same untraced-features "$(feature hooks) $(feature lacks)" "partial alloc_migration_target"
dmesg | grep -q "soloist: .*'alloc_migration_target' can't be traced: [a-z]" && ok untraced-log ||
	fail untraced-log "$(dmesg | grep soloist)"
rmmod soloist

# The papers' calls are optional even for whoever asks for them.
insmod "$MODULE" mmap_abi=1 lack=ksys_mmap_pgoff && ok mmap-optional-loads ||
	fail mmap-optional-loads "refused"
same mmap-optional-features "$(feature hooks) $(feature lacks)" "partial ksys_mmap_pgoff"
