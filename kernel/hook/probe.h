/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes on tracepoints of the kernel that it does not export by symbol. They
 * share: any number of users per tracepoint.
 */
#ifndef SOLOIST_PROBE_H
#define SOLOIST_PROBE_H

#include <linux/tracepoint.h>

struct sol_probe {
	const char *name;
	void *fn;		/* (void *data, then what the tracepoint has) */
	struct tracepoint *tp;	/* private */
};

/* Register all of @probes, or none. 0, or an errno; the kernel log says why. */
int sol_probes_add(struct sol_probe *probes, unsigned int n);

/* Unregister @probes, and wait until none runs any more. */
void sol_probes_remove(struct sol_probe *probes, unsigned int n);

#endif /* SOLOIST_PROBE_H */
