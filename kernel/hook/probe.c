// SPDX-License-Identifier: GPL-2.0
/*
 * Probes: tracepoints by name.
 *
 * Locking: the kernel's. A probe must not sleep; newer kernels may preempt it.
 */
#include <linux/printk.h>

#include "probe.h"
#include "table.h"

static int add(struct sol_probe *probe)
{
	int err = -ENOENT;

	probe->tp = sol_event(probe->name);
	if (probe->tp)
		err = tracepoint_probe_register(probe->tp, probe->fn, NULL);
	if (err)
		pr_err("tracepoint '%s' can't be used (%d)\n", probe->name,
		       err);
	return err;
}

int sol_probes_add(struct sol_probe *probes, unsigned int n)
{
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		err = add(&probes[i]);
		if (err) {
			sol_probes_remove(probes, i);
			return err;
		}
	}
	return 0;
}

void sol_probes_remove(struct sol_probe *probes, unsigned int n)
{
	while (n-- > 0)
		tracepoint_probe_unregister(probes[n].tp, probes[n].fn, NULL);
	tracepoint_synchronize_unregister();
}
