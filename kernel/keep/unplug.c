// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that goes offline: a block's listed frames are given back first, and again
 * while it goes, since a page that is freed at the wrong moment may still come to a
 * list.
 *
 * Linux tries to offline a block as long as one of its frames is neither free nor
 * movable, without sleeping. Unloading waits for RCU-tasks as the hooks go, so it would
 * wait for that, and that for our frames. Hence this goes down after the hooks, and the
 * lists give everything back right after it.
 *
 * Walks over frames (refill.c) ask whether a region is online and look at its pages
 * afterwards, without a lock. They are sections of sol_lists_users: when those that may
 * have asked before have ended, the pages may go.
 *
 * Locking: Linux takes one block offline at a time (mem_hotplug_lock).
 */
#include <linux/memory.h>
#include <linux/workqueue.h>

#include "../frames/giveback.h"
#include "../hook/hook.h"
#include "keep.h"

#define SWEEP_PERIOD	(HZ / 10)

static u64 leaving_start, leaving_end;	/* written by the notifier only */

static void leaving_sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(leaving_work, leaving_sweep);

static void leaving_sweep(struct work_struct *work)
{
	sol_store_evict(leaving_start, leaving_end);
	schedule_delayed_work(&leaving_work, SWEEP_PERIOD);
}

static int unplug_memory(struct notifier_block *nb, unsigned long action,
			 void *data)
{
	const struct memory_notify *block = data;

	switch (action) {
	case MEM_GOING_OFFLINE:
		leaving_start = block->start_pfn;
		leaving_end = block->start_pfn + block->nr_pages;
		leaving_sweep(NULL);
		break;
	case MEM_OFFLINE:
		synchronize_srcu(&sol_lists_users);
		fallthrough;
	case MEM_CANCEL_OFFLINE:
		cancel_delayed_work_sync(&leaving_work);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block unplug_nb = { .notifier_call = unplug_memory };

int sol_unplug_init(void)
{
	return register_memory_notifier(&unplug_nb);
}

void sol_unplug_exit(void)
{
	unregister_memory_notifier(&unplug_nb);
	cancel_delayed_work_sync(&leaving_work);
}
