/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* 3,000 groups made and removed; ids are found again; memory comes back. */
#include "../lib/guest.h"
#include "../lib/kernel.h"

#include <stdio.h>
#include <unistd.h>

#define N 3000

static long slab_kib(void)
{
	return kernel_number("/proc/meminfo", "SUnreclaim") +
	       kernel_number("/proc/meminfo", "Percpu");
}

static void round_trip(int n)
{
	char name[32];
	int i, err;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		guest_group(name, i % 100 ? NULL : "0-1");
	}
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		err = guest_ungroup(name);
		if (err)
			guest_die("rmdir %s: %d", name, err);
	}
}

int main(void)
{
	long before, after = 0;
	int i;

	/* configfs looks through all names at every mkdir, so time grows by the square. */
	round_trip(N);
	before = slab_kib();
	round_trip(N);
	/* Freed after grace periods, which a busy guest is slow with. */
	for (i = 0; i < 100; i++) {
		after = slab_kib();
		if (after - before < 1024)
			break;
		usleep(100000);
	}
	guest_check(after - before < 1024, "many-groups-memory-back",
		    "%ld KiB of slab and percpu before, %ld after", before,
		    after);
	return guest_exit();
}
