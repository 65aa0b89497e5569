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
 *            Those who wait go on after some frames or a part of a millisecond: if at
 *            the first frame, they would wait again soon.
 *            That ends as soon as a fault waits again, of whatever group: its pass
 *            comes first. The mark doubles each time that a fault had to wait, and
 *            falls back when the shrinker takes frames: so supply and reclaim do not
 *            play ball with frames. A group's reserve is a mark that does not fall
 *   at last  if no list of the group has a frame: all of its cells, whatever others
 *            have there; the lists of CPUs, ours and the kernel's, are emptied. That
 *            takes long. It gives way to faults of other groups after each part, and
 *            goes on in its turn
 *
 * Free frames are taken while the zone has more than its low watermark. Beyond that
 * kswapd is woken, and frames that others use are made free (frames/evacuate.c), which
 * leaves the zone as it is. Pages of several cells move together. Only at last does the
 * thread itself reclaim to find room for them: that may take long, and often finds none.
 *
 * A pass that finds nothing says why: the colours are short (their frames are the
 * group's own, or nobody can move them), or the node's memory is. Only the first is a
 * reason to grow. The group is dry then for a tenth of a second; after eight such
 * passes in a row it is full, and dry for longer each time. So a task that keeps
 * asking for more costs little, whoever it is.
 *
 * Two walks over frames stand, each with visitors. sol_refill_walk() goes over one cell
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
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/clock.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../compat/workqueue.h"
#include "../frames/cpu_list.h"
#include "../frames/evacuate.h"
#include "../frames/giveback.h"
#include "../frames/refill.h"
#include "../frames/want.h"
#include "../group/node_cells.h"
#include "../hook/hook.h"
#include "../trace/trace.h"
#include "supply.h"

#define GOAL_MIN	256u	/* frames listed ahead ... */
#define GOAL_MAX	4096u
#define CELL_MARK	(2 * SOL_CELL_LOW)	/* ... at least so many in a cell */
#define SCAN_STEP	1024u	/* frames of a cell that a step looks at */
#define SCAN_SHORT	64u	/* the same, for free ones, while a fault waits */
#define SCAN_LAST	(1u << 22)	/* the same for all cells, at last: 16 GiB ... */
#define SCAN_LAST_PART	(1u << 14)	/* ... and for a part of a cell */
#define ANSWER_FRAMES	128u	/* an answer is due after so many frames ... */
#define ANSWER_NS	(300 * NSEC_PER_USEC)	/* ... or so long */
#define VAIN_BACKOFF	max(HZ / 10, 1)
#define VAIN_SHIFTS	5	/* a full group is dry for 3.2 s at most */

/* By node: what its thread gathers. Written at load and unload only. */
static struct sol_evacuation *evacuations[SOL_MAX_NODES];

/**
 * struct pass - a pass for one group on one node
 * @wants: of the node
 * @evacuation: the node's, empty between two steps
 * @id: the group
 * @nid: the node
 * @begin: where the group's cursor was
 * @got: frames listed
 * @looked: frames in use that were looked at
 * @until: local_clock() when the answer is due, if there are frames
 * @told: it was given
 */
struct pass {
	struct sol_wants *wants;
	struct sol_evacuation *evacuation;
	u16 id;
	int nid;
	u32 begin;
	u32 got;
	u32 looked;
	u64 until;
	bool told;
};

/* What a step needs to know of a cell. */
struct target {
	u32 cell;
	u32 n;		/* cells that the group has on the node */
	u32 mark;	/* frames that the cell shall have at least, by the goal */
};

/* The cell @steps after where the pass began. It must be in a section of the lists. */
static bool target_at(const struct pass *p, u32 steps, struct target *t)
{
	struct node_cells c;
	bool there = false;

	with_node_cells(&c, p->id, p->nid) {
		u32 goal = max(READ_ONCE(c.node->goal), GOAL_MIN);

		if (steps >= c.n)
			continue;
		t->cell = c.cell[sol_cells_advance(p->begin % c.n, c.n,
						   c.per_set, steps)];
		t->n = c.n;
		t->mark = max3(goal / c.n, CELL_MARK, c.cells->reserve);
		there = true;
	}
	return there;
}

/* Does any list of the group on the node have a frame? */
static bool any_listed(const struct pass *p)
{
	struct target t;
	bool any = false;
	int users = sol_lists_begin();
	u32 i;

	for (i = 0; !any && target_at(p, i, &t); i++)
		any = sol_cell_listed(t.cell);
	sol_lists_end(users);
	return any;
}

/* ---- Listing frames of a cell ---- */

static void note_refill(const struct pass *p, u32 cell, u32 got, u64 ns)
{
	trace_soloist_refill(p->id, cell, got, ns);
	sol_with_group(g, p->id) {
		sol_group_add(g, refills, 1);
		sol_group_add(g, refill[sol_time_order(ns)], 1);
	}
}

/* List frames of @cell until it has @mark: free ones, and gather pages for the rest. */
static void fill_cell(struct pass *p, u32 cell, u32 mark, u32 looks)
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
		note_refill(p, cell, got, local_clock() - begin);
	p->got += got;
}

/* Evacuate the frames that were gathered. @cell: one of their cells. */
static void finish(struct pass *p, u32 cell)
{
	u64 begin = local_clock();
	u32 in_vain, got;

	got = sol_evacuate_finish(p->evacuation, false, &in_vain);
	if (got)
		note_refill(p, cell, got, local_clock() - begin);
	p->got += got;
}

static void answer(struct pass *p)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		WRITE_ONCE(c.node->answers, READ_ONCE(c.node->answers) + 1);
	sol_want_answer(p->wants, p->id);
	p->told = true;
}

static bool due(const struct pass *p)
{
	return !p->told &&
	       (p->got >= ANSWER_FRAMES || local_clock() >= p->until);
}

/* Let those go on that wait: the last pass may have listed what they need. */
static void answer_if_due(struct pass *p)
{
	if (due(p) && (p->got || any_listed(p)))
		answer(p);
}

/*
 * From the *@i-th cell on, until so much is gathered that it must go, or the answer is
 * due, or the @n-th: up to @mark, but no more than the goal says. *@more becomes true if
 * the goal says more.
 */
static void fill_some(struct pass *p, u32 *i, u32 n, u32 mark, u32 looks,
		      bool *more)
{
	int users = sol_lists_begin();
	struct target t = { 0 };

	while (*i < n && p->evacuation->n < SOL_EVACUATED_MAX &&
	       !(due(p) && (p->got || p->evacuation->n))) {
		if (!target_at(p, *i, &t)) {
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
static void fill_at_once(struct pass *p, u32 n, u32 mark, bool waits)
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
static bool fill_ahead(struct pass *p, u32 n)
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

enum {
	AS_IT_IS,	/* the kernel's lists of CPUs are just being emptied */
	DRAINED,	/* they are empty */
	RECLAIMED,	/* there is room for pages that move */
	N_STAGES
};

/* Make frames of @cell free, whatever that takes: of a part of it. */
static u32 evacuate(struct pass *p, struct sol_last_look *at, u32 cell)
{
	u32 part = min(at->looks, SCAN_LAST_PART), left = part, got;

	if (!at->in_cell)
		sol_evacuate_anew(cell);
	got = sol_evacuate(p->evacuation, cell, SOL_REFILL_MAX, true, &left);
	at->in_cell = !left && sol_evacuate_in_round(cell);
	at->looks -= part - left;
	p->looked += part - left;
	return got;
}

/* A part of the cell @at. Return: false: there is no such cell. */
static bool look_at_cell(struct pass *p, struct sol_last_look *at)
{
	u64 begin = local_clock();
	int users = sol_lists_begin();
	bool there;
	struct target t;
	u32 got = 0;

	there = target_at(p, at->step, &t);
	if (there)
		got = evacuate(p, at, t.cell);
	if (got)
		note_refill(p, t.cell, got, local_clock() - begin);
	sol_lists_end(users);
	p->got += got;
	at->step += !at->in_cell;
	return there;
}

static bool gives_way(const struct pass *p)
{
	return sol_want_others_wait(p->wants, p->id) || kthread_should_stop();
}

/*
 * All cells of the group, from @at on, until one has frames. Return: false: it gave way,
 * after a part at least.
 */
static bool look_everywhere(struct pass *p, struct sol_last_look *at)
{
	while (at->looks && look_at_cell(p, at) && !p->got)
		if (at->looks && gives_way(p))
			return false;
	return true;
}

/* Reclaim: kswapd, or if it must be at once our own try. */
static void make_room(int nid, bool at_once)
{
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | __GFP_NORETRY | __GFP_NOWARN;
	struct page *page;

	if (!at_once)
		gfp &= ~__GFP_DIRECT_RECLAIM;
	page = alloc_pages_node(nid, gfp, 0);
	if (page)
		__free_page(page);
}

static u32 n_drains;

/*
 * The kernel's lists of CPUs may hold frames of the colours. To empty them takes up to
 * 10 ms, so that a worker does it while we look elsewhere.
 */
static void drain_fn(struct work_struct *work)
{
	sol_evacuate_drain();
	WRITE_ONCE(n_drains, n_drains + 1);
}

static DECLARE_WORK(drain_work, drain_fn);

/* The group's next pass after the drain looks for free frames again. */
static void note_drain(const struct pass *p)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid) {
		c.node->drains = READ_ONCE(n_drains);
		c.node->drained = true;
	}
}

/* Return: false: the stage is not needed. */
static bool stage_begin(const struct pass *p, u8 stage)
{
	switch (stage) {
	case AS_IT_IS:
		sol_cpu_lists_flush();
		if (any_listed(p))
			return false;
		queue_work(sol_unbound_wq(), &drain_work);
		return true;
	case DRAINED:
		flush_work(&drain_work);
		return true;
	default:
		if (!sol_evacuate_memory_short(p->nid))
			return false;
		make_room(p->nid, true);
		return true;
	}
}

/* Look for a frame, from @at on. Return: false: it gave way. */
static bool look(struct pass *p, struct sol_last_look *at)
{
	for (; at->stage < N_STAGES; at->stage++) {
		if (!at->looks) {
			if (!stage_begin(p, at->stage))
				return true;
			at->looks = SCAN_LAST;
			at->step = 0;
			at->in_cell = false;
		}
		if (!look_everywhere(p, at))
			return false;
		if (p->got)
			return true;
		at->looks = 0;
	}
	return true;
}

static struct sol_last_look last_look(const struct pass *p)
{
	struct sol_last_look at = { 0 };
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		at = c.node->last;
	return at;
}

static void note_last_look(const struct pass *p, struct sol_last_look at)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		c.node->last = at;
}

/* No list has a frame. Look for one. Return: false: it gave way, *@outcome is unset. */
static bool at_last(struct pass *p, enum sol_outcome *outcome)
{
	struct sol_last_look at = last_look(p);

	if (!look(p, &at)) {
		note_last_look(p, at);
		return false;
	}
	if (p->got && at.stage == AS_IT_IS)
		note_drain(p);
	if (p->got || any_listed(p))
		*outcome = SOL_FOUND;
	else
		*outcome = at.stage == N_STAGES ? SOL_NO_MEMORY : SOL_NO_COLOR;
	return true;
}

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
static u32 set_goal(const struct pass *p, bool waits)
{
	bool dear = sol_store_shrunk_lately(p->nid);
	struct node_cells c;
	u32 n = 0, goal;

	with_node_cells(&c, p->id, p->nid) {
		goal = READ_ONCE(c.node->goal);
		if (waits)
			goal *= 2;
		goal = dear ? GOAL_MIN : clamp(goal, GOAL_MIN, GOAL_MAX);
		WRITE_ONCE(c.node->goal, goal);
		n = min(c.n, max(goal / CELL_MARK, SOL_SCAN_CELLS));
	}
	return n;
}

/* Frames of each of the next cells that one fill of a per-CPU list takes. */
static u32 taken_by_a_fill(const struct pass *p)
{
	struct node_cells c;
	u32 n = SOL_BATCHES;

	with_node_cells(&c, p->id, p->nid)
		n = min(c.n, SOL_BATCHES);
	return DIV_ROUND_UP(SOL_BATCHES, n) * SOL_BATCH_FRAMES;
}

/* Were the kernel's lists of CPUs emptied for the group, and nobody has looked since? */
static bool drained(const struct pass *p)
{
	struct node_cells c;
	bool is = false;

	with_node_cells(&c, p->id, p->nid) {
		is = c.node->drained && c.node->drains != READ_ONCE(n_drains);
		if (is)
			c.node->drained = false;
	}
	return is;
}

static void retry_if_drained(const struct pass *p)
{
	int users;
	struct target t;
	u32 i;

	if (!drained(p))
		return;
	users = sol_lists_begin();
	for (i = 0; target_at(p, i, &t); i++)
		sol_refill_retry(t.cell);
	sol_lists_end(users);
}

static void note_looked(const struct pass *p)
{
	trace_soloist_supply(p->id, p->nid, p->got, p->looked);
	sol_group_add_to(p->id, looked, p->looked);
}

static void note_pass(struct pass *p, enum sol_outcome outcome)
{
	struct node_cells c;

	note_looked(p);
	with_node_cells(&c, p->id, p->nid) {
		note_outcome(c.node, outcome, p->got);
		c.node->last = (struct sol_last_look){ 0 };
	}
}

/* The pass ends before it is over, and goes on in its turn. */
static void give_way(const struct pass *p, bool waits)
{
	note_looked(p);
	sol_want_again(p->wants, p->id, waits);
}

static void note_cursor(struct pass *p)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		p->begin = READ_ONCE(c.node->cursor);
}

static void supply(struct sol_wants *wants, u16 id, bool waits)
{
	struct pass p = {
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
	retry_if_drained(&p);
	note_cursor(&p);
	if (sol_evacuate_memory_low(p.nid))
		make_room(p.nid, false);
	fill_at_once(&p, min(n, SOL_BATCHES), taken_by_a_fill(&p), waits);
	answer_if_due(&p);
	if (!fill_ahead(&p, n) && p.got) {
		if (!p.told)
			answer(&p);
		note_pass(&p, outcome);
		sol_want(id, p.nid);	/* the rest, after who waits */
		return;
	}
	if (!p.got && !any_listed(&p) && !at_last(&p, &outcome)) {
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

	for_each_node_state(nid, N_MEMORY) {
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
	flush_work(&drain_work);
}
