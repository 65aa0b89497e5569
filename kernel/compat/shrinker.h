/* SPDX-License-Identifier: GPL-2.0 */
/* Shrinkers: static and registered until 6.6, allocated from 6.7 on. */
#ifndef SOLOIST_COMPAT_SHRINKER_H
#define SOLOIST_COMPAT_SHRINKER_H

#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/version.h>

typedef unsigned long sol_shrink_fn(struct shrinker *shrinker,
				    struct shrink_control *sc);

/* A NUMA-aware shrinker whose objects cost nothing to make again, or NULL. */
static inline struct shrinker *
sol_shrinker_register(const char *name, sol_shrink_fn *count,
		      sol_shrink_fn *scan)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	struct shrinker *s = shrinker_alloc(SHRINKER_NUMA_AWARE, name);
#else
	struct shrinker *s = kzalloc(sizeof(*s), GFP_KERNEL);
#endif

	if (!s)
		return NULL;
	s->count_objects = count;
	s->scan_objects = scan;
	s->seeks = 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	shrinker_register(s);
#else
	s->flags = SHRINKER_NUMA_AWARE;
	if (register_shrinker(s, name)) {
		kfree(s);
		return NULL;
	}
#endif
	return s;
}

/* A shrinker's scan freed @pages, which are on no LRU list. */
static inline void sol_shrinker_reclaimed(unsigned long pages)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	mm_account_reclaimed_pages(pages);
#else
	if (current->reclaim_state)
		current->reclaim_state->reclaimed_slab += pages;
#endif
}

static inline void sol_shrinker_unregister(struct shrinker *s)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	shrinker_free(s);
#else
	unregister_shrinker(s);
	kfree(s);
#endif
}

#endif /* SOLOIST_COMPAT_SHRINKER_H */
