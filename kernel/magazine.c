// SPDX-License-Identifier: GPL-2.0
/*
 * Magazines: filling one from the lists, flushing all. See magazine.h.
 */
#include <linux/cpuhotplug.h>
#include <linux/jiffies.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "magazine.h"
#include "parts.h"

DEFINE_PER_CPU(struct sol_magazine, sol_magazines);

static void clip_flush(struct sol_clip *clip)
{
	raw_spinlock_t *lock = sol_cell_lock(clip->cell);

	if (!clip->n)
		return;
	raw_spin_lock(lock);
	while (clip->n)
		sol_frames_put(&sol_store, clip->pfn[--clip->n], clip->zero);
	raw_spin_unlock(lock);
}

static void flush(struct sol_magazine *m)
{
	u32 i;

	for (i = 0; i < SOL_CLIPS; i++)
		clip_flush(&m->clip[i]);
}

static void flush_here(void *unused)
{
	flush(this_cpu_ptr(&sol_magazines));
}

/* A CPU that is gone for good can't flush what it left behind. */
static int flush_dead(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	flush(per_cpu_ptr(&sol_magazines, cpu));
	local_irq_restore(flags);
	return 0;
}

/*
 * No lock against CPUs going down: the callers may hold that one already
 * (memory going offline) or be called under it (out of memory, while a CPU is
 * brought up). A CPU that goes down meanwhile is flushed when it is dead.
 */
void sol_magazines_flush(void)
{
	on_each_cpu(flush_here, NULL, 1);
}

void sol_magazines_flush_seldom(void)
{
	static unsigned long next;	/* jiffies; racy: once more does no harm */

	if (next && time_before(jiffies, READ_ONCE(next)))
		return;
	WRITE_ONCE(next, jiffies + HZ / 10);
	sol_magazines_flush();
}

static int hotplug_state;

int sol_magazines_init(void)
{
	hotplug_state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN,
						  "soloist:magazine", NULL,
						  flush_dead);
	return min(hotplug_state, 0);
}

void sol_magazines_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
}

u64 sol_magazines_count(void)
{
	u64 sum = 0;
	int cpu, i;

	for_each_possible_cpu(cpu)
		for (i = 0; i < SOL_CLIPS; i++)
			sum += READ_ONCE(per_cpu(sol_magazines, cpu).clip[i].n);
	return sum;
}

static bool clip_fill(struct sol_clip *clip, u32 cell, u32 index, bool zero)
{
	raw_spinlock_t *lock = sol_cell_lock(cell);

	if (!sol_cell_listed(cell))
		return false;
	clip->cell = cell;
	clip->index = index;
	raw_spin_lock(lock);
	clip->n = sol_frames_get_many(&sol_store, cell, 0, zero, clip->pfn,
				      SOL_ROUNDS, &clip->zero);
	raw_spin_unlock(lock);
	return clip->n;
}

/* From the cells of the group on this CPU's node, beginning at its cursor. */
static void fill(struct sol_magazine *m, struct sol_group *g,
		 const struct sol_cells *cells, bool zero)
{
	u32 first, n, i, looks, clips = 0;
	int nid = numa_node_id();

	if (nid >= SOL_MAX_NODES)
		return;
	first = cells->first[nid];
	n = cells->first[nid + 1] - first;
	if (!n)
		return;
	i = READ_ONCE(g->cursor[nid]) % n;
	/* Few cells may fill several clips each. */
	looks = clamp(n, SOL_CLIPS, SOL_LOOKS);
	for (; looks && clips < SOL_CLIPS; looks--) {
		clips += clip_fill(&m->clip[clips], cells->cell[first + i],
				   first + i, zero);
		i = sol_cells_next(i, n, cells->per_set[nid]);
	}
	WRITE_ONCE(g->cursor[nid], i);
}

static struct sol_clip *find(struct sol_magazine *m,
			     const struct sol_cells *cells)
{
	u32 i;

	for (i = 0; i < SOL_CLIPS; i++)
		if (sol_clip_fits(&m->clip[i], cells))
			return &m->clip[i];
	return NULL;
}

struct sol_clip *sol_magazine_fill(struct sol_magazine *m, struct sol_group *g,
				   const struct sol_cells *cells, bool zero)
{
	struct sol_clip *clip = find(m, cells);

	if (clip)
		return clip;
	flush(m);
	fill(m, g, cells, zero);
	return find(m, cells);
}
