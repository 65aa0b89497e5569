// SPDX-License-Identifier: GPL-2.0
/*
 * The last look: what a pass does if no list of the group has a frame.
 *
 * It looks at all cells of the group, whatever others have there, in three stages:
 *
 *   as it is   while a worker empties the kernel's lists of CPUs
 *   drained    they are empty
 *   reclaimed  if the node's memory is short, or had no room for a page that moves: after
 *              the thread's own try to reclaim, so that there is some
 *
 * Each stage ends after 16 GiB. The look gives way to faults of other groups after each
 * part of a cell. The group's node keeps where it was, and its next pass goes on there.
 *
 * Locking: as supply.c. No section of the lists outlasts a part of a cell.
 */
#include <linux/kthread.h>
#include <linux/sched/clock.h>
#include <linux/workqueue.h>

#include "../compat/workqueue.h"
#include "../frames/giveback.h"
#include "../frames/refill.h"
#include "../hook/hook.h"
#include "last_look.h"

#define LOOKS_IN_A_STAGE	(1u << 22)	/* frames: 16 GiB of small pages */
#define LOOKS_IN_A_PART		(1u << 14)

enum {
	AS_IT_IS,	/* the kernel's lists of CPUs are just being emptied */
	DRAINED,	/* they are empty */
	RECLAIMED,	/* there is room for pages that move */
	N_STAGES
};

/* Make frames of @cell free, whatever that takes: of a part of it. */
static u32 evacuate(struct sol_pass *p, struct sol_last_look *at, u32 cell)
{
	u32 part = min(at->looks, LOOKS_IN_A_PART), left = part, got;

	if (!at->in_cell)
		sol_evacuate_anew(cell);
	got = sol_evacuate(p->evacuation, cell, SOL_REFILL_MAX, true, &left);
	at->in_cell = !got && sol_evacuate_in_round(cell);
	at->looks -= part - left;
	p->looked += part - left;
	return got;
}

/* A part of the cell @at. Return: false: there is no such cell. */
static bool look_at_cell(struct sol_pass *p, struct sol_last_look *at)
{
	u64 begin = local_clock();
	int users = sol_lists_begin();
	bool there;
	struct sol_target t;
	u32 got = 0;

	there = sol_pass_target(p, at->step, &t);
	if (there)
		got = evacuate(p, at, t.cell);
	if (got)
		sol_pass_note_refill(p, t.cell, got, local_clock() - begin);
	sol_lists_end(users);
	p->got += got;
	at->step += !at->in_cell;
	return there;
}

static bool gives_way(const struct sol_pass *p)
{
	return sol_want_others_wait(p->wants, p->id) || kthread_should_stop();
}

/*
 * All cells of the group, from @at on, until one has frames. Return: false: it gave way,
 * after a part at least.
 */
static bool look_everywhere(struct sol_pass *p, struct sol_last_look *at)
{
	while (at->looks && look_at_cell(p, at) && !p->got)
		if (at->looks && gives_way(p))
			return false;
	return true;
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

/* A drain begins: the group's next pass after it looks for free frames again. */
static void note_drain(const struct sol_pass *p)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid) {
		c.node->drains = READ_ONCE(n_drains);
		c.node->drained = true;
	}
}

/* Were the kernel's lists of CPUs emptied for the group, and nobody has looked since? */
static bool drained(const struct sol_pass *p)
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

/* The drain needs no look by the next pass: this one looks. */
static void forget_drain(const struct sol_pass *p)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		c.node->drained = false;
}

/* The worker may wait for a CPU. Return: false: it is not done, and others wait. */
static bool wait_for_drain(const struct sol_pass *p)
{
	while (work_busy(&drain_work)) {
		if (gives_way(p))
			return false;
		schedule_timeout_idle(1);
	}
	return true;
}

/* Return: false: the stage is not needed. */
static bool stage_begin(const struct sol_pass *p, u8 stage)
{
	switch (stage) {
	case AS_IT_IS:
		sol_cpu_lists_flush();
		if (sol_pass_any_listed(p))
			return false;
		p->evacuation->no_room = false;
		note_drain(p);
		queue_work(sol_unbound_wq(), &drain_work);
		return true;
	case DRAINED:
		forget_drain(p);
		return true;
	default:
		if (!sol_evacuate_memory_short(p->nid) && !p->evacuation->no_room)
			return false;
		sol_pass_make_room(p, true);
		return true;
	}
}

/* Look for a frame, from @at on. Return: false: it gave way. */
static bool look(struct sol_pass *p, struct sol_last_look *at)
{
	for (; at->stage < N_STAGES; at->stage++) {
		if (!at->looks) {
			if (at->stage == DRAINED && !wait_for_drain(p))
				return false;
			if (!stage_begin(p, at->stage))
				return true;
			at->looks = LOOKS_IN_A_STAGE;
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

static struct sol_last_look where_it_was(const struct sol_pass *p)
{
	struct sol_last_look at = { 0 };
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		at = c.node->last;
	return at;
}

static void note_where(const struct sol_pass *p, struct sol_last_look at)
{
	struct node_cells c;

	with_node_cells(&c, p->id, p->nid)
		c.node->last = at;
}

bool sol_last_look(struct sol_pass *p, enum sol_outcome *outcome)
{
	struct sol_last_look at = where_it_was(p);

	/* Its steps count from there. Faults have moved the cursor meanwhile. */
	if (at.looks)
		p->begin = at.begin;
	if (!look(p, &at)) {
		at.begin = p->begin;
		note_where(p, at);
		return false;
	}
	/* Others may have taken the frames that were listed when the look began. */
	if (p->got || at.stage == AS_IT_IS || sol_pass_any_listed(p))
		*outcome = SOL_FOUND;
	else
		*outcome = at.stage == N_STAGES ? SOL_NO_MEMORY : SOL_NO_COLOR;
	return true;
}

void sol_last_look_retry(const struct sol_pass *p)
{
	int users;
	struct sol_target t;
	u32 i;

	if (!drained(p))
		return;
	users = sol_lists_begin();
	for (i = 0; sol_pass_target(p, i, &t); i++)
		sol_refill_retry(t.cell);
	sol_lists_end(users);
}

void sol_last_look_flush(void)
{
	flush_work(&drain_work);
}
