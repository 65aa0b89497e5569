/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes on tracepoints of the kernel that it does not export by symbol. They
 * share: any number of users per tracepoint.
 */
#ifndef SOLOIST_PROBE_H
#define SOLOIST_PROBE_H

#include <linux/tracepoint.h>

/**
 * struct sol_probe - a function that a tracepoint calls
 * @name: of the tracepoint
 * @fn: takes void *data, which is NULL, and then what the tracepoint has
 * @tp: private
 */
struct sol_probe {
	const char *name;
	void *fn;
	struct tracepoint *tp;
};

/**
 * sol_probes_add() - register probes, all or none; may sleep
 * @probes: live until sol_probes_remove()
 * @n: how many
 *
 * Return: 0, or an errno; the kernel log says why.
 */
int sol_probes_add(struct sol_probe *probes, unsigned int n);

/**
 * sol_probes_remove() - unregister probes, and wait until none runs any more; may sleep
 * @probes: that were registered
 * @n: how many
 */
void sol_probes_remove(struct sol_probe *probes, unsigned int n);

#endif /* SOLOIST_PROBE_H */
