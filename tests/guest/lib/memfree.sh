# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced: memory that is free, in kB, once caches are dropped.

# MemFree, and what the kernel's per-CPU page lists hold. These grow up to an
# eighth of memory under load (6.12), and MemFree does not count them.
mem_free() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	awk '/^MemFree:/ { kb += $2 } /^ +count:/ { kb += 4 * $2 } END { print kb }' \
		/proc/meminfo /proc/zoneinfo
}
