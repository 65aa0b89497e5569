// SPDX-License-Identifier: GPL-2.0
/*
 * Recolour: pages that running tasks have already move into their group's colours.
 *
 * The page tables of each address space are walked in slices, a few pages at a time and
 * SLICE_LOOKS entries at most, with mmap_lock held for reading. What a slice finds
 * migrates without that lock, each page to a frame that the group's faults might have
 * got. A page counts as in place if the group handed it out and the frame is of its
 * colours, which may have changed since. One that lies in the colours by chance moves
 * too, so that its frame comes back to the lists when it is freed.
 *
 * A page of a file in a private mapping (program text) is not moved: others may map it.
 * All its mappings are undone instead, and the next access of a coloured task makes a
 * copy in colour, as after exec. Text that is locked in memory stays, since its task
 * counts on having no fault. Shared mappings are in no colour, as ever.
 *
 * Pages that the task maps while the walk goes on are in colour anyway. Further passes
 * try again a page that was in use for a moment.
 *
 * Locking: mmap_lock for a slice, and the page table's lock inside. A fault may hold
 * mmap_lock for as long as the server of a file likes, so that we only try it; an address
 * space whose lock is not to be had counts as a busy page. None while pages migrate. A
 * reference on each page, and on the address space.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pagewalk.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../command/status.h"
#include "../fault/request.h"
#include "../fault/text.h"
#include "../frames/store.h"
#include "../group/group.h"
#include "../compat/nodes.h"
#include "../group/member.h"
#include "../group/node_cells.h"
#include "../group/tasks.h"
#include "../hook/hook.h"
#include "../occupancy/sweep.h"
#include "recolor.h"

#define LOCK_WAIT	(HZ / 2)
#define SLICE_LOOKS	1024u	/* page table entries */

static SOL_JOB(recolor_job, "recolor");

DEFINE_STATIC_CALL_NULL(sol_recolor_walk, sol_walk_fn);
typedef void unmap_fn(struct folio *folio, enum ttu_flags flags);
DEFINE_STATIC_CALL_NULL(sol_recolor_unmap, unmap_fn);
static bool can_walk, can_unmap;

/* A page that a slice found, referenced. */
struct found {
	struct page *page;
	bool locked;	/* its mapping is locked in memory */
	bool bound;	/* its mapping is bound to nodes, by a policy of its own */
};

/**
 * struct recolor - pages of one address space
 * @group: whose colours they go to
 * @task: the only one whose pages move; NULL: all of the group's
 * @mm: the address space
 * @colors: the group's
 * @nodes: that its task may allocate on
 * @file_stays: the mapping that is looked at has pages of files that no access copies
 * @at: where the next slice begins
 * @looked: entries of page tables that the slice looked at
 * @found: pages that the slice found
 * @n: how many
 * @unsplit: a huge page that could not be split: not tried again for each part
 * @batch: pages that will migrate
 * @bound: of these, by their place in it: to frames of their own node only
 */
struct recolor {
	struct sol_group *group;
	struct task_struct *task;
	struct mm_struct *mm;
	struct sol_sweep colors;
	nodemask_t nodes;
	bool file_stays;
	unsigned long at;
	u32 looked;
	struct found found[SOL_BATCH_PAGES];
	u32 n;
	struct folio *unsplit;
	struct sol_move_batch batch;
	bool bound[SOL_BATCH_PAGES];
};

/* ---- Targets ---- */

static bool is_bound(const struct recolor *r, u64 pfn)
{
	u32 i;

	for (i = 0; i < r->batch.n; i++)
		if (r->batch.pfn[i] == pfn)
			return r->bound[i];
	return false;
}

/*
 * Of the page's own node if the group has colours there, as a policy of its mapping may
 * want it; else of one near that, on which its task may allocate. Where the current task
 * runs, who only asks for it, means nothing.
 */
static struct page *recolor_target(struct page *src, void *ctx)
{
	struct recolor *r = ctx;
	struct sol_request rq = {
		.id = r->group->id,
		.gfp = GFP_HIGHUSER_MOVABLE | __GFP_NOWARN,
		.modest = true,
		.target = true,
		.nid = page_to_nid(src),
		.allowed = &r->nodes,
	};
	nodemask_t own = nodemask_of_node(rq.nid);
	int users = sol_lists_begin();
	struct page *page;

	if (is_bound(r, page_to_pfn(src)))
		rq.allowed = &own;
	page = sol_request_page(&rq);
	sol_lists_end(users);
	if (!page)
		r->batch.report->stays[SOL_STAYS_NO_ROOM]++;
	return page;
}

/* ---- A slice ---- */

/* Private mappings of plain memory. */
static int test_walk(unsigned long start, unsigned long end,
		     struct mm_walk *walk)
{
	struct recolor *r = walk->private;

	r->file_stays = sol_text_stays(r->group->id, walk->vma);
	return !!(walk->vma->vm_flags & (VM_SHARED | VM_PFNMAP | VM_IO |
					 VM_MIXEDMAP | VM_HUGETLB));
}

static bool in_place(const struct recolor *r, u64 pfn)
{
	const struct sol_frame *frame = sol_frames_at(&sol_store, pfn);

	return READ_ONCE(frame->tag) & SOL_TAG_USED &&
	       READ_ONCE(frame->link) == r->group->id && sol_sweep_has(&r->colors, pfn);
}

/*
 * Note a page that shall move. The page table's lock is held, so it stays. Not 0: the
 * slice is full, or the page is part of a huge one, which needs a slice of its own: of
 * two parts each would keep the other from being split.
 */
static int visit_pte(pte_t *pte, unsigned long addr, unsigned long next,
		     struct mm_walk *walk)
{
	struct recolor *r = walk->private;
	pte_t entry = *pte;
	struct page *page;

	if (++r->looked > SLICE_LOOKS) {
		r->at = addr;
		return 1;
	}
	if (!pte_present(entry) || pte_special(entry) ||
	    !pfn_valid(pte_pfn(entry)))
		goto next;
	page = pte_page(entry);
	if (is_zone_device_page(page))
		goto next;
	recolor_job.report.seen++;
	/* Memory that was plugged in since is in nobody's colours. */
	if (pte_pfn(entry) < sol_store.n_frames && in_place(r, pte_pfn(entry))) {
		recolor_job.report.in_place++;
		goto next;
	}
	if (!PageAnon(page) && r->file_stays)
		goto next;
	if (PageCompound(page) && r->n) {
		r->at = addr;
		recolor_job.report.seen--;
		return 1;
	}
	get_page(page);
	r->found[r->n++] = (struct found){
		.page = page,
		.locked = walk->vma->vm_flags & VM_LOCKED,
		.bound = sol_vma_is_bound(walk->vma),
	};
	if (r->n == SOL_BATCH_PAGES || PageCompound(page)) {
		r->at = next;
		return 1;
	}
next:
	return 0;
}

static const struct mm_walk_ops walk_ops = {
	.pte_entry = visit_pte,
	.test_walk = test_walk,
	SOL_WALK_LOCKED
};

/* Return: 0; -EBUSY; or why the job is over. */
static int lock_mm(struct mm_struct *mm)
{
	unsigned long end = jiffies + LOCK_WAIT;
	int err = 0;

	while (!err && !mmap_read_trylock(mm)) {
		schedule_timeout_interruptible(1);
		err = sol_job_over(&recolor_job) ?:
		      time_after(jiffies, end) ? -EBUSY : 0;
	}
	return err;
}

/* Find the next pages. Return: 1: there may be more; 0: that was all; or an errno. */
static int slice(struct recolor *r)
{
	int ret;

	r->n = 0;
	r->looked = 0;
	ret = lock_mm(r->mm);
	if (ret)
		return ret;
	ret = static_call(sol_recolor_walk)(r->mm, r->at, r->mm->task_size,
					    &walk_ops, r);
	mmap_read_unlock(r->mm);
	return ret > 0 && r->at < r->mm->task_size;
}

/* ---- One page ---- */

/* The next access of a coloured task makes a copy. */
static enum sol_stay unmap_file(struct folio *folio, bool locked)
{
	if (!can_unmap)
		return SOL_STAYS_SHARED;
	if (locked)
		return SOL_STAYS_UNEVICTABLE;
	if (!folio_trylock(folio))
		return SOL_STAYS_BUSY;
	if (folio->mapping && !folio_test_anon(folio))
		static_call(sol_recolor_unmap)(folio, TTU_SPLIT_HUGE_PMD);
	folio_unlock(folio);
	if (folio_mapped(folio))
		return SOL_STAYS_BUSY;
	recolor_job.report.unmapped++;
	return SOL_N_STAYS;
}

static bool split_once(struct recolor *r, struct page *page)
{
	struct folio *folio = page_folio(page);

	if (folio == r->unsplit)
		return false;
	if (sol_page_split(page, NULL))
		return true;
	r->unsplit = folio;
	return false;
}

/* Is the small page @page mapped more than once? */
static bool is_shared(struct page *page)
{
	return atomic_read(&page->_mapcount) > 0;
}

static bool has_colors_on(const struct sol_group *group, int nid)
{
	struct node_cells c;
	bool has = false;

	with_node_cells(&c, group->id, nid)
		has = true;
	return has;
}

/* Return: why the page stays; SOL_N_STAYS: it moves. */
static enum sol_stay recolor_page(struct recolor *r, struct found *found)
{
	struct page *page = found->page;
	struct folio *folio = page_folio(page);
	enum sol_stay stays;

	stays = recolor_job.spare ? sol_page_spare(page) : SOL_N_STAYS;
	if (stays != SOL_N_STAYS)
		return stays;
	if (!folio_test_anon(folio))
		return unmap_file(folio, found->locked);
	if (folio_maybe_dma_pinned(folio))
		return SOL_STAYS_PINNED;
	if (PageCompound(page) && !split_once(r, page))
		return SOL_STAYS_HUGE;
	if (is_shared(page) || folio_test_ksm(page_folio(page)))
		return SOL_STAYS_SHARED;
	if (found->bound && !has_colors_on(r->group, page_to_nid(page)))
		return SOL_STAYS_NO_ROOM;
	r->bound[r->batch.n] = found->bound;
	return sol_batch_add(&r->batch, page) ? SOL_N_STAYS : SOL_STAYS_BUSY;
}

static void move_found(struct recolor *r)
{
	enum sol_stay stays;
	u32 i;

	for (i = 0; i < r->n; i++) {
		stays = recolor_page(r, &r->found[i]);
		if (stays < SOL_N_STAYS)
			recolor_job.report.stays[stays]++;
		put_page(r->found[i].page);
	}
	sol_batch_move(&r->batch);
	sol_job_pace(&recolor_job);
}

/* ---- All of them ---- */

static int one_mm(struct recolor *r)
{
	int more;

	r->at = 0;
	do {
		more = slice(r);
		if (more == -EBUSY) {
			recolor_job.report.stays[SOL_STAYS_BUSY]++;
			return 0;
		}
		move_found(r);
		cond_resched();
		more = sol_job_over(&recolor_job) ?: more;
	} while (more > 0);
	return more;
}

/* A task's address space if it is the group's and not @last, referenced, or NULL. */
static struct mm_struct *mm_of(struct task_struct *task,
			       const struct sol_group *group,
			       const struct mm_struct *last)
{
	struct mm_struct *mm = get_task_mm(task);
	struct task_struct *speaker;

	if (!mm) {
		/* A thread that leads may end before the others. */
		rcu_read_lock();
		speaker = sol_member_speaker(task);
		mm = speaker ? get_task_mm(speaker) : NULL;
		rcu_read_unlock();
	}
	if (!mm || (group_id_of_mm(mm) == group->id && mm != last))
		return mm;
	mmput_async(mm);
	return NULL;
}

/* Where @task may allocate. One that ended has no policy any more: its process' others have. */
static nodemask_t nodes_of(struct task_struct *task)
{
	struct task_struct *speaker = NULL;
	nodemask_t nodes;

	rcu_read_lock();
	if (READ_ONCE(task->flags) & PF_EXITING)
		speaker = sol_member_speaker(task);
	nodes = sol_member_nodemask(speaker ?: task);
	rcu_read_unlock();
	return nodes;
}

static int recolor_tasks(struct recolor *r, struct task_struct **tasks, u32 n)
{
	struct mm_struct *last = NULL;
	int err = 0;
	u32 i;

	for (i = 0; i < n && !err; i++) {
		struct mm_struct *mm = mm_of(tasks[i], r->group, last);

		if (!mm)
			continue;
		last = mm;	/* threads of a process stand side by side */
		r->mm = mm;
		r->nodes = nodes_of(tasks[i]);
		err = one_mm(r);
		mmput_async(mm);
	}
	return err;
}

static int all_tasks(struct recolor *r)
{
	struct sol_tasks *tasks = sol_tasks_new_for_all();
	int err;

	if (!tasks)
		return -ENOMEM;
	sol_tasks_find(tasks, sol_member_is_in, r->group);
	err = recolor_tasks(r, tasks->task, tasks->n);
	sol_tasks_free(tasks);
	return err;
}

static int recolor_pass(void *ctx)
{
	struct recolor *r = ctx;
	int err = sol_sweep_begin(&r->colors, r->group);

	if (err)
		return err;
	r->unsplit = NULL;
	err = r->task ? recolor_tasks(r, &r->task, 1) : all_tasks(r);
	sol_sweep_end(&r->colors);
	return err;
}

static int may_recolor(struct sol_group *group, struct task_struct *task)
{
	struct mm_struct *mm;

	if (!can_walk)
		return sol_deny(-EOPNOTSUPP,
				"recolor: this kernel has no walk_page_range()");
	if (!rcu_access_pointer(group->cells))
		return sol_deny(-ENODATA, "recolor: %s has no colours yet",
				group->name);
	if (!task)
		return 0;
	mm = mm_of(task, group, NULL);
	if (!mm)
		return sol_deny(-EINVAL,
				"recolor: the memory of process %d is not of group %s; write it to procs first",
				task_tgid_vnr(task), group->name);
	mmput_async(mm);
	return 0;
}

int sol_recolor(struct sol_group *group, struct task_struct *task,
		const struct sol_job_how *how)
{
	struct recolor *r;
	int err = may_recolor(group, task) ?: sol_job_begin(&recolor_job, group, how);

	if (err)
		return err;
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	err = -ENOMEM;
	if (r) {
		INIT_LIST_HEAD(&r->batch.pages);
		r->batch.asked = (struct sol_asked){ .ask = recolor_target, .ctx = r };
		r->batch.report = &recolor_job.report;
		r->group = group;
		r->task = task;
		err = sol_job_passes(&recolor_job, recolor_pass, r);
	}
	kfree(r);
	return sol_job_end(&recolor_job, group, err);
}

ssize_t sol_recolor_show(const struct sol_group *group, char *page)
{
	return sol_job_show(&recolor_job, group, page);
}

void sol_recolor_forget(const struct sol_group *group)
{
	sol_job_forget(&recolor_job, group);
}

void sol_recolor_init(void)
{
	can_walk = !sol_bind(sol_recolor_walk, "walk_page_range");
	can_unmap = !sol_bind(sol_recolor_unmap, "try_to_unmap");
}
