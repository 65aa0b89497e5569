// SPDX-License-Identifier: GPL-2.0
/*
 * The address spaces that map a page, by the kernel's own walk.
 *
 * Locking: tries the folio's lock and, inside it, takes or tries what the walk takes.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>

#include "../hook/hook.h"
#include "mappings.h"

typedef void rmap_walk_fn(struct folio *folio, struct rmap_walk_control *rwc);
DEFINE_STATIC_CALL_NULL(sol_rmap_walk, rmap_walk_fn);
static bool can_walk;

struct question {
	bool (*has)(struct vm_area_struct *vma, void *arg);
	void *arg;
	bool found;
};

static bool one_mapping(struct folio *folio, struct vm_area_struct *vma,
			unsigned long addr, void *arg)
{
	struct question *q = arg;

	q->found = q->has(vma, q->arg);
	return !q->found;
}

int sol_mappings_any(struct page *page, bool wait,
		     bool (*has)(struct vm_area_struct *vma, void *arg), void *arg)
{
	struct folio *folio = page_folio(page);
	struct question q = { .has = has, .arg = arg };
	struct rmap_walk_control walk = {
		.arg = &q,
		.try_lock = !wait,
		.rmap_one = one_mapping,
	};

	if (!folio_mapped(folio))
		return 0;
	if (!can_walk)
		return -ENOENT;
	if (!folio_trylock(folio))
		return -EBUSY;
	/* Without the lock it may have been unmapped, or split. */
	if (page_folio(page) == folio && folio_mapped(folio) &&
	    (folio_test_anon(folio) || folio->mapping))
		static_call(sol_rmap_walk)(folio, &walk);
	folio_unlock(folio);
	return walk.contended ? -EBUSY : q.found;
}

void sol_mappings_init(void)
{
	can_walk = !sol_bind(sol_rmap_walk, "rmap_walk");
}
