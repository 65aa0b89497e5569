// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim: listed frames are free memory, and Linux gets them when it needs memory.
 *
 * Under pressure a shrinker gives back, node by node, frames that no group reserved;
 * seeks is 0, since a frame costs nothing to take again. Before the OOM killer all
 * frames go back, and if there were none, coloured pages may be swapped for a while
 * (move.c). A frame that failed is forgotten. unplug.c handles memory blocks that go
 * offline.
 *
 * MemAvailable counts listed frames through NR_KERNEL_MISC_RECLAIMABLE. A work item
 * updates that once a second, so that the fault path does not pay for it. The work is
 * not deferrable: an idle CPU would defer it as long as it sleeps, while others fill
 * the lists, and a daemon that watches MemAvailable (systemd-oomd, earlyoom) would kill
 * although there is memory.
 *
 * Locking: a raw lock for the frames that failed. Each callback is called by one thread
 * at a time, or touches only atomic state of the store. One work does the accounting.
 */
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/spinlock.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "../compat/shrinker.h"
#include "../compat/workqueue.h"
#include "../hook/hook.h"
#include "../hook/probe.h"
#include "keep.h"
#include "../frames/giveback.h"
#include "../group/member.h"
#include "../frames/store.h"

#define ACCOUNT_PERIOD	HZ		/* how old MemAvailable may be */

/* ---- Shrinker ---- */

static unsigned long reclaim_count(struct shrinker *s,
				   struct shrink_control *sc)
{
	return sol_store_count(sc->nid);
}

static unsigned long reclaim_scan(struct shrinker *s, struct shrink_control *sc)
{
	unsigned long given = sol_store_shrink(sc->nid, sc->nr_to_scan);

	/* Or reclaim goes on, to page cache and swap, and allocations fail beside free memory. */
	sol_shrinker_reclaimed(given);
	return given ?: SHRINK_STOP;
}

static struct shrinker *reclaim_shrinker;

/* ---- The OOM killer ---- */

/*
 * If we say that something was freed, nobody is killed, and the current task asks again.
 * Frames on nodes where it may have none are no help: a group that frees and takes them
 * all the time would have it ask for ever.
 */
static int reclaim_oom(struct notifier_block *nb, unsigned long unused,
		       void *freed)
{
	u64 given = sol_store_drain_oom(sol_member_nodes(current));

	if (!given && sol_move_allow_swap())
		given = 1;
	*(unsigned long *)freed += given;
	return NOTIFY_OK;
}

static struct notifier_block reclaim_oom_nb = { .notifier_call = reclaim_oom };

/* ---- Failing memory ---- */

/*
 * The kernel never frees a frame that failed in use, so that its group would wait for it
 * for ever. A frame that failed in a list must leave the list. The tracepoint may not
 * sleep, nor allocate where locks sleep, so that a work item does both.
 */
#define FAILED_MAX	64u

static unsigned long failed[FAILED_MAX];
static u32 n_failed;
static DEFINE_RAW_SPINLOCK(failed_lock);

static bool next_failed(unsigned long *pfn)
{
	bool any;

	raw_spin_lock_irq(&failed_lock);
	any = n_failed;
	if (any)
		*pfn = failed[--n_failed];
	raw_spin_unlock_irq(&failed_lock);
	return any;
}

static void failed_forget(struct work_struct *work)
{
	int users = sol_lists_begin();	/* see unplug.c */
	unsigned long pfn;
	struct page *page;

	while (next_failed(&pfn)) {
		page = pfn_to_online_page(pfn);
		/* A frame in a per-CPU list counts as ours, too. */
		if (page && page_count(page) && sol_store_owns(page))
			sol_store_forget(page);
		else
			sol_store_evict(pfn, pfn + 1);
	}
	sol_lists_end(users);
}

static DECLARE_WORK(failed_work, failed_forget);

static void probe_failure(void *data, unsigned long pfn, int type, int result)
{
	unsigned long flags;
	bool room;

	raw_spin_lock_irqsave(&failed_lock, flags);
	room = n_failed < FAILED_MAX;
	if (room)
		failed[n_failed++] = pfn;
	raw_spin_unlock_irqrestore(&failed_lock, flags);
	if (!room)
		pr_warn_ratelimited("frame %#lx failed, as %u others just did: its group goes on counting it\n",
				    pfn, FAILED_MAX);
	schedule_work(&failed_work);
}

static struct sol_probe failure_probe = { "memory_failure_event", probe_failure };

/* ---- MemAvailable ---- */

static long accounted[MAX_NUMNODES];	/* by the work only */

/* A node that went offline has a sum to give back; one that never came has no NODE_DATA. */
static void account(int nid, long now)
{
	if (now == accounted[nid])
		return;
	mod_node_page_state(NODE_DATA(nid), NR_KERNEL_MISC_RECLAIMABLE,
			    now - accounted[nid]);
	accounted[nid] = now;
}

static void account_all(struct work_struct *work);
static DECLARE_DELAYED_WORK(account_work, account_all);

static void account_all(struct work_struct *work)
{
	int nid;

	for_each_node_state(nid, N_POSSIBLE)
		account(nid, node_online(nid) ? sol_store_count(nid) : 0);
	queue_delayed_work(sol_unbound_wq(), &account_work, ACCOUNT_PERIOD);
}

static void account_end(void)
{
	int nid;

	cancel_delayed_work_sync(&account_work);
	for_each_node_state(nid, N_POSSIBLE)
		account(nid, 0);
}

/* ---- */

int sol_reclaim_init(void)
{
	int err;

	reclaim_shrinker = sol_shrinker_register("soloist", reclaim_count,
						 reclaim_scan);
	if (!reclaim_shrinker)
		return -ENOMEM;
	err = register_oom_notifier(&reclaim_oom_nb);
	if (err)
		goto no_oom;
	if (IS_ENABLED(CONFIG_MEMORY_FAILURE))
		err = sol_probes_add(&failure_probe, 1);
	if (err)
		goto no_probe;
	account_all(NULL);
	return 0;

no_probe:
	unregister_oom_notifier(&reclaim_oom_nb);
no_oom:
	sol_shrinker_unregister(reclaim_shrinker);
	return err;
}

void sol_reclaim_exit(void)
{
	account_end();
	if (IS_ENABLED(CONFIG_MEMORY_FAILURE))
		sol_probes_remove(&failure_probe, 1);
	flush_work(&failed_work);
	unregister_oom_notifier(&reclaim_oom_nb);
	sol_shrinker_unregister(reclaim_shrinker);
}
