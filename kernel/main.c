// SPDX-License-Identifier: GPL-2.0
/*
 * soloist.ko: memory in colour on a stock kernel.
 *
 * Each part has sol_X_init() and, if it leaves anything, sol_X_exit(). They
 * come up in the order below and go down in reverse: the control interface
 * first, so that nothing new begins; then the hooks, so that nobody is inside;
 * then supply, whose threads look groups up, and the groups; the lists last, so
 * that every page is back before the module is gone.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "control/control.h"
#include "control/mmap_abi.h"
#include "fault/fault.h"
#include "frames/evacuate.h"
#include "frames/giveback.h"
#include "frames/refill.h"
#include "frames/store.h"
#include "group/space.h"
#include "guard/guard.h"
#include "hook/hook.h"
#include "keep/keep.h"
#include "migrate/migrate.h"
#include "palette/life.h"
#include "rule/cgroup.h"
#include "rule/rule.h"
#include "supply/supply.h"

static const struct {
	const char *name;
	int (*init)(void);
	void (*exit)(void);
} parts[] = {
	{ "hook",	sol_hook_init,		sol_hook_exit },
	{ "store",	sol_store_init,		sol_store_exit },
	{ "refill",	sol_refill_init },
	{ "evacuate",	sol_evacuate_init },
	{ "giveback",	sol_giveback_init,	sol_giveback_exit },
	{ "unplug",	sol_unplug_init,	sol_unplug_exit },
	{ "group",	sol_group_init,		sol_group_exit },
	{ "supply",	sol_supply_init,	sol_supply_exit },
	{ "fault",	sol_fault_init,		sol_fault_exit },
	{ "stay",	sol_stay_init,		sol_stay_exit },
	{ "move",	sol_move_init,		sol_move_exit },
	{ "migrate",	sol_migrate_init },
	{ "cgroup",	sol_cgroup_init,	sol_cgroup_exit },
	{ "reclaim",	sol_reclaim_init,	sol_reclaim_exit },
	{ "mmap_abi",	sol_mmap_abi_init,	sol_mmap_abi_exit },
	{ "rule",	sol_rule_init,		sol_rule_exit },
	{ "guard",	sol_guard_init,		sol_guard_exit },
	{ "control",	sol_control_init,	sol_control_exit },
};

static void parts_down(unsigned int n)
{
	while (n-- > 0)
		if (parts[n].exit)
			parts[n].exit();
}

static int __init soloist_init(void)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		err = parts[i].init();
		if (err) {
			pr_err("not loaded: %s can't start (%d)\n",
			       parts[i].name, err);
			parts_down(i);
			return err;
		}
	}
	return 0;
}

static void __exit soloist_exit(void)
{
	parts_down(ARRAY_SIZE(parts));
}

module_init(soloist_init);
module_exit(soloist_exit);

MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_DESCRIPTION("Memory in colour: DRAM banks, controllers and caches kept apart");
