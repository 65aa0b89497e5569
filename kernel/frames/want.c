// SPDX-License-Identifier: GPL-2.0
/*
 * Wants: asking supply for frames, and waiting for them; see want.h.
 */
#include <linux/bitmap.h>
#include <linux/sched/rt.h>
#include <linux/slab.h>

#include "../group/node_cells.h"
#include "want.h"

#define WAIT	HZ	/* at most */

struct sol_wants *sol_wants[SOL_MAX_NODES];

void sol_want(u16 id, int nid)
{
	struct sol_wants *wants = READ_ONCE(sol_wants[nid]);

	if (!wants)
		return;
	if (!test_and_set_bit(id, wants->groups))
		set_bit(id / SOL_WANT_CHUNK, (unsigned long *)&wants->chunks);
	wake_up_process(wants->thread);
}

/* The group after the last one, or the first, with a bit in @waited; 0: none. */
static u16 next_waited(struct sol_wants *wants)
{
	const u32 end = SOL_MAX_GROUPS + 1;
	u32 id;

	if (!sol_want_waited(wants))
		return 0;
	id = find_next_bit(wants->waited, end, wants->last + 1);
	if (id >= end)
		id = find_first_bit(wants->waited, end);
	if (id >= end || !test_and_clear_bit(id, wants->waited))
		return 0;
	atomic_dec(&wants->n_waited);
	wants->last = id;
	return id;
}

/* A group of @chunk, @from on, with a bit in @groups; 0: none. */
static u32 wanted_in(struct sol_wants *wants, u32 chunk, u32 from)
{
	u32 begin = chunk * SOL_WANT_CHUNK, end = begin + SOL_WANT_CHUNK;
	u32 id = find_next_bit(wants->groups, end, max(from, begin));

	return id < end ? id : 0;
}

/* Chunk @chunk seems to be empty. Return: a group that wanted just now, or 0. */
static u32 chunk_is_empty(struct sol_wants *wants, u32 chunk)
{
	unsigned long *chunks = (unsigned long *)&wants->chunks;
	u32 id;

	clear_bit(chunk, chunks);
	smp_mb__after_atomic();	/* sol_want() sets the group's bit first */
	id = wanted_in(wants, chunk, 0);
	if (id)
		set_bit(chunk, chunks);
	return id;
}

/* A group from @from on with a bit in @groups; 0: none. */
static u32 wanted_from(struct sol_wants *wants, u32 from)
{
	u64 chunks = READ_ONCE(wants->chunks) & ~0ull << from / SOL_WANT_CHUNK;
	u32 chunk, id;

	for (; chunks; chunks &= chunks - 1) {
		chunk = __ffs64(chunks);
		id = wanted_in(wants, chunk, from);
		if (!id && from <= chunk * SOL_WANT_CHUNK)
			id = chunk_is_empty(wants, chunk);
		if (id)
			return id;
	}
	return 0;
}

/* The group after the last one, or the first, with a bit in @groups; 0: none. */
static u16 next_wanted(struct sol_wants *wants)
{
	u32 id = 0;

	if (wants->last_wanted < SOL_MAX_GROUPS)
		id = wanted_from(wants, wants->last_wanted + 1);
	id = id ?: wanted_from(wants, 0);
	if (id)
		wants->last_wanted = id;
	return id;
}

u16 sol_want_next(struct sol_wants *wants, bool *waits)
{
	u16 id = next_waited(wants);

	*waits = id;
	id = id ?: next_wanted(wants);
	if (id)
		clear_bit(id, wants->groups);
	return id;
}

static void note_waited(struct sol_wants *wants, u16 id)
{
	if (!test_and_set_bit(id, wants->waited))
		atomic_inc(&wants->n_waited);
}

void sol_want_again(struct sol_wants *wants, u16 id, bool waits)
{
	if (waits)
		note_waited(wants, id);
	sol_want(id, wants->nid);
}

void sol_want_answer(struct sol_wants *wants, u16 id)
{
	wake_up_all(&wants->answered[id % SOL_WANT_QUEUES]);
}

/* How many answers group @id has had on @nid. Return: it has cells there. */
static bool answers(u16 id, int nid, u32 *n)
{
	struct node_cells c;
	bool there = false;

	with_node_cells(&c, id, nid) {
		*n = READ_ONCE(c.node->answers);
		there = true;
	}
	return there;
}

static bool answered(u16 id, int nid, u32 before)
{
	u32 now;

	return !answers(id, nid, &now) || now != before;
}

/*
 * A task of real-time priority or with a deadline shall not wait for those of none. On
 * some kernels rt_task() leaves out deadlines.
 */
static bool hurry(struct sol_wants *wants)
{
	if (current->prio >= MAX_RT_PRIO)
		return false;
	if (atomic_inc_return(&wants->urgent) == 1)
		sched_set_fifo_low(wants->thread);
	return true;
}

/* The second look sees a want that comes after the first, or that want hurries us. */
void sol_want_settle(struct sol_wants *wants)
{
	if (!rt_task(current) || atomic_read(&wants->urgent))
		return;
	sched_set_normal(current, 0);
	if (atomic_read(&wants->urgent))
		sched_set_fifo_low(current);
}

bool sol_want_wait(u16 id, int nid)
{
	struct sol_wants *wants = READ_ONCE(sol_wants[nid]);
	bool told, urgent;
	u32 before;

	if (!wants || !answers(id, nid, &before))
		return true;
	sol_group_add_to(id, waited, 1);
	urgent = hurry(wants);
	note_waited(wants, id);
	sol_want(id, nid);
	told = wait_event_killable_timeout(
			wants->answered[id % SOL_WANT_QUEUES],
			answered(id, nid, before), WAIT) > 0;
	if (urgent)
		atomic_dec(&wants->urgent);
	return told;
}

struct sol_wants *sol_wants_new(int nid)
{
	struct sol_wants *wants = kvzalloc_node(sizeof(*wants), GFP_KERNEL, nid);
	int i;

	if (!wants)
		return NULL;
	wants->nid = nid;
	for (i = 0; i < SOL_WANT_QUEUES; i++)
		init_waitqueue_head(&wants->answered[i]);
	return wants;
}

void sol_wants_free(struct sol_wants *wants)
{
	kvfree(wants);
}
