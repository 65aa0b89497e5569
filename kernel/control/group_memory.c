// SPDX-License-Identifier: GPL-2.0
/*
 * The files of what lies in a group's colours: occupancy.
 *
 * Locking: none of its own. A file shows the state of a moment.
 */
#include <linux/sysfs.h>

#include "../command/status.h"
#include "../occupancy/occupancy.h"
#include "group.h"

ssize_t sol_group_occupancy_show(struct config_item *item, char *page)
{
	struct sol_occupancy o;
	ssize_t n = 0;
	int err, i;

	err = sol_occupancy_take(sol_to_group(item), &o);
	if (err)
		return sol_deny(err, err == -EINTR ?
				"occupancy: interrupted by a signal" :
				"occupancy: no memory for the colours");
	for (i = 0; i < SOL_N_HELD; i++)
		n += sysfs_emit_at(page, n, "%s %llu\n", sol_holder_name[i],
				   o.held[i]);
	return n + sysfs_emit_at(page, n,
		"pinned %llu\nunevictable %llu\nlooked %llu\none_of %u\ntook_us %llu\n",
		o.pinned, o.unevictable, o.looked, o.one_of, o.took_us);
}
