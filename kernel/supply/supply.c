// SPDX-License-Identifier: GPL-2.0
/*
 * Supply: each node has a thread that lists frames for groups ahead of need, so that no
 * fault walks a zone, moves a page or drains another CPU.
 *
 * A group asks (frames/want.h) when the cells that its next faults take from have few
 * frames left, or none. A pass answers it:
 *
 *   at once  a few frames for each of the next cells
 *   ahead    the next cells are filled up to a mark, all of them to a part of it first.
 *            Tasks that wait go on after some frames or a part of a millisecond: after
 *            the first frame they would soon wait again.
 *            The pass ends as soon as a fault waits again, of whatever group: the
 *            pass of that fault comes first. The mark doubles each time that a fault
 *            had to wait, and falls back when the shrinker takes frames: else supply
 *            would list again what reclaim has just taken. A group's reserve is a mark
 *            that does not fall
 *   at last  all of the group's cells, whatever others have there, if none of its lists
 *            has a frame (last_look.c)
 *
 * Free frames are taken while the zone has more than its low watermark. Beyond that
 * kswapd is woken, and frames that others use are made free (frames/evacuate.c), which
 * leaves the zone as it is. Pages of several cells move together. Only at last does the
 * thread itself reclaim to find room for them: that may take long, and often finds none.
 *
 * A pass that finds nothing says why: the colours are short (their frames are the
 * group's own, or nobody can move them), or the node's memory is. A group grows only for
 * the first reason. The group is dry then for a tenth of a second; after eight such
 * passes it is full, and dry for longer each time. A pass that lists frames takes one of
 * them off. So a task that keeps asking for more costs little, whoever it is.
 *
 * The module has two walks over frames, each with visitors. sol_refill_walk() goes over one cell
 * and stops at a few frames: refill (for a pass, a reserve and `lists`) takes the free
 * ones, and evacuation gathers the others, too. sol_sweep_run() goes over memory once for
 * many cells: occupancy counts, eviction gathers. One walk for both would look at all
 * memory for a few frames of a cell, or go over memory once for each cell. Recolouring
 * walks page tables, not frames.
 *
 * The threads are the kernel's own (not workers of a queue), because a task of
 * real-time priority lends them one, the lowest, while it waits: else an ordinary task
 * could hold it up. They run wherever the kernel's threads may.
 *
 * Locking: a section of the lists for each step, in which a group's cells are looked
 * up with preemption off. No lock of the module's is held while a step runs.
 */
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/clock.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "../frames/evacuate.h"
#include "../frames/giveback.h"
#include "../frames/refill.h"
#include "../frames/want.h"
#include "../group/node_cells.h"
#include "../hook/hook.h"
#include "../trace/trace.h"
#include "last_look.h"
#include "supply.h"

#define SCAN_STEP	1024u	/* frames of a cell that a step looks at */
#define SCAN_SHORT	64u	/* the same, for free ones, while a fault waits */
#define ANSWER_FRAMES	128u	/* an answer is due after so many frames ... */
#define ANSWER_NS	(300 * NSEC_PER_USEC)	/* ... or so long */
#define VAIN_BACKOFF	max(HZ / 10, 1)
#define VAIN_SHIFTS	5	/* a full group is dry for 3.2 s at most */

/* By node: what its thread gathers. Written at load and unload only. */
static struct sol_evacuation *evacuations[SOL_MAX_NODES];

/* ---- Listing frames of a cell ---- */

/* List frames of @cell until it has @mark: free ones, and gather pages for the rest. */
static void fill_cell(struct sol_pass *p, u32 cell, u32 mark, u32 looks)
{
	u32 have = sol_cell_listed(cell), got, before;
	u64 begin = local_clock();

	if (have >= mark)
		return;
	got = sol_refill(cell, mark - have, &looks);
	have += got;
	if (have < mark) {
		looks = before = SCAN_STEP;
		got += sol_evacuate_gather(p->evacuation, cell, mark - have,
					   false, &looks);
		p->looked += before - looks;
	}
	if (got)
		sol_pass_note_refill(p, cell, got, local_clock() - begin);
	p->got += got;
}

/* Evacuate the frames that were gathered. @cell: one of their cells. */
static void finish(struct sol_pass *p, u32 cell)
{
	u64 begin = local_clock();
	u32 in_vain, got;

	got = sol_evacuate_finish(p->evacuation, false, &in_vain);
	if (got)
		sol_pass_note_refill(p, cell, got, local_clock() - begin);
	p->got += got;
}

static void answer(struct sol_pass *p)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		WRITE_ONCE(c.node->answers, READ_ONCE(c.node->answers) + 1);
	sol_want_answer(p->wants, p->id);
	p->told = true;
}

static bool due(const struct sol_pass *p)
{
	return !p->told &&
	       (p->got >= ANSWER_FRAMES || local_clock() >= p->until);
}

/* Let those go on that wait: the last pass may have listed what they need. */
static void answer_if_due(struct sol_pass *p)
{
	if (due(p) && (p->got || sol_pass_any_listed(p)))
		answer(p);
}

/*
 * From the *@i-th cell on, until so much is gathered that it must go, or the answer is
 * due, or the @n-th: up to @mark, but no more than the goal says. *@more becomes true if
 * the goal says more.
 */
static void fill_some(struct sol_pass *p, u32 *i, u32 n, u32 mark, u32 looks,
		      bool *more)
{
	int users = sol_lists_begin();
	struct sol_target t = { 0 };

	while (*i < n && p->evacuation->n < SOL_EVACUATED_MAX &&
	       !(due(p) && (p->got || p->evacuation->n))) {
		if (!sol_pass_target(p, *i, &t)) {
			*i = n;
			break;
		}
		fill_cell(p, t.cell, min(mark, t.mark), looks);
		*more |= t.mark > mark;
		++*i;
		cond_resched();
	}
	finish(p, t.cell);
	sol_lists_end(users);
}

/* The cells that the next fill of a per-CPU list takes from, up to @mark each. */
static void fill_at_once(struct sol_pass *p, u32 n, u32 mark, bool waits)
{
	u32 looks = waits ? SCAN_SHORT : SCAN_STEP, i = 0;
	bool more = false;

	while (i < n) {
		fill_some(p, &i, n, mark, looks, &more);
		answer_if_due(p);
	}
}

/*
 * The next @n cells, up to what the goal says: all to a low mark, then to twice that.
 * Return: false: it ended early, for a fault waits.
 */
static bool fill_ahead(struct sol_pass *p, u32 n)
{
	bool more = true;
	u32 mark, i;

	for (mark = SOL_CELL_LOW; more; mark *= 2) {
		more = false;
		for (i = 0; i < n; ) {
			fill_some(p, &i, n, mark, SCAN_STEP, &more);
			answer_if_due(p);
			if (sol_want_waited(p->wants) || kthread_should_stop())
				return false;
		}
	}
	return true;
}

/* ---- The end of a pass ---- */

/* @more: frames were listed, and not only found in lists of CPUs. */
static void note_outcome(struct sol_node_state *node, enum sol_outcome outcome,
			 bool more)
{
	u32 vain = READ_ONCE(node->vain), shift;

	WRITE_ONCE(node->outcome, outcome);
	if (outcome == SOL_FOUND) {
		vain = min(vain, SOL_PATIENCE);
		if (vain && more)
			WRITE_ONCE(node->vain, vain - 1);
		return;
	}
	vain = min(vain + 1, SOL_PATIENCE + VAIN_SHIFTS);
	shift = vain > SOL_PATIENCE ? vain - SOL_PATIENCE : 0;
	WRITE_ONCE(node->dry_until, jiffies + (VAIN_BACKOFF << shift));
	WRITE_ONCE(node->vain, vain);
}

/* ---- A pass ---- */

/* The next mark: higher if somebody @waits, low if memory is dear. Return: cells. */
static u32 set_goal(const struct sol_pass *p, bool waits)
{
	bool dear = sol_store_shrunk_lately(p->nid);
	struct node_cells c;
	u32 n = 0, goal;

	with_node_cells(&c, p->id, p->nid) {
		goal = READ_ONCE(c.node->goal);
		if (waits)
			goal *= 2;
		goal = dear ? SOL_GOAL_MIN : clamp(goal, SOL_GOAL_MIN, SOL_GOAL_MAX);
		WRITE_ONCE(c.node->goal, goal);
		n = min(c.n, max(goal / SOL_CELL_MARK, SOL_SCAN_CELLS));
	}
	return n;
}

/* Frames of each of the next cells that one fill of a per-CPU list takes. */
static u32 taken_by_a_fill(const struct sol_pass *p)
{
	struct node_cells c;
	u32 n = SOL_BATCHES;

	with_node_cells(&c, p->id, p->nid)
		n = min(c.n, SOL_BATCHES);
	return DIV_ROUND_UP(SOL_BATCHES, n) * SOL_BATCH_FRAMES;
}

static void note_looked(const struct sol_pass *p)
{
	trace_soloist_supply(p->id, p->nid, p->got, p->looked);
	sol_group_add_to(p->id, looked, p->looked);
}

static void note_pass(struct sol_pass *p, enum sol_outcome outcome)
{
	struct node_cells c;

	note_looked(p);
	with_node_cells(&c, p->id, p->nid) {
		note_outcome(c.node, outcome, p->got);
		c.node->last = (struct sol_last_look){ 0 };
	}
}

/* The pass ends before it is over, and goes on in its turn. */
static void give_way(const struct sol_pass *p, bool waits)
{
	note_looked(p);
	sol_want_again(p->wants, p->id, waits);
}

static void note_cursor(struct sol_pass *p)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		p->begin = READ_ONCE(c.node->cursor);
}

static void supply(struct sol_wants *wants, u16 id, bool waits)
{
	struct sol_pass p = {
		.wants = wants,
		.evacuation = evacuations[wants->nid],
		.id = id,
		.nid = wants->nid,
		.until = local_clock() + ANSWER_NS,
	};
	enum sol_outcome outcome = SOL_FOUND;
	u32 n = set_goal(&p, waits);

	if (!n) {	/* the group has no cell here any more */
		sol_want_answer(wants, id);
		return;
	}
	sol_last_look_retry(&p);
	note_cursor(&p);
	if (sol_evacuate_memory_low(p.nid))
		sol_pass_make_room(&p, false);
	fill_at_once(&p, min(n, SOL_BATCHES), taken_by_a_fill(&p), waits);
	answer_if_due(&p);
	if (!fill_ahead(&p, n) && p.got) {
		if (!p.told)
			answer(&p);
		note_pass(&p, outcome);
		sol_want(id, p.nid);	/* the rest, after who waits */
		return;
	}
	if (!p.got && !sol_pass_any_listed(&p) && !sol_last_look(&p, &outcome)) {
		give_way(&p, waits && !p.told);
		return;
	}
	note_pass(&p, outcome);
	answer(&p);
}

/* ---- Threads ---- */

static int supply_thread(void *data)
{
	struct sol_wants *wants = data;
	bool waits;
	u16 id;

	for (;;) {
		sol_want_settle(wants);
		set_current_state(TASK_IDLE);
		id = sol_want_next(wants, &waits);
		if (id || kthread_should_stop())
			__set_current_state(TASK_RUNNING);
		if (kthread_should_stop())
			return 0;
		if (id)
			supply(wants, id, waits);
		else
			schedule();
	}
}

static void node_free(struct sol_wants *wants)
{
	kfree(evacuations[wants->nid]);
	evacuations[wants->nid] = NULL;
	sol_wants_free(wants);
}

static int node_start(int nid)
{
	struct sol_wants *wants = sol_wants_new(nid);
	struct task_struct *thread;

	if (!wants)
		return -ENOMEM;
	evacuations[nid] = sol_evacuation_new();
	if (!evacuations[nid]) {
		node_free(wants);
		return -ENOMEM;
	}
	thread = kthread_create_on_node(supply_thread, wants, nid,
					"soloist/%d", nid);
	if (IS_ERR(thread)) {
		node_free(wants);
		return PTR_ERR(thread);
	}
	wants->thread = get_task_struct(thread);
	WRITE_ONCE(sol_wants[nid], wants);
	wake_up_process(thread);
	return 0;
}

int sol_supply_init(void)
{
	int nid, err;

	/* Memory may come to a node later. */
	for_each_online_node(nid) {
		err = nid < SOL_MAX_NODES ? node_start(nid) : 0;
		if (err) {
			sol_supply_exit();
			return err;
		}
	}
	return 0;
}

void sol_supply_exit(void)
{
	int nid;

	for (nid = 0; nid < SOL_MAX_NODES; nid++) {
		struct sol_wants *wants = sol_wants[nid];

		if (!wants)
			continue;
		WRITE_ONCE(sol_wants[nid], NULL);
		kthread_stop(wants->thread);
		put_task_struct(wants->thread);
		node_free(wants);
	}
	sol_last_look_flush();
}
