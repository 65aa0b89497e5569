/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Wants: groups that run short of listed frames on a node ask supply for more, and
 * faults wait for its answer.
 *
 * A want is a bit in a bitmap of the node. The node's thread (supply/) takes the bits
 * one by one, those of groups with a fault that waits first. It makes a pass for each,
 * counts it as an answer (struct sol_node_state) and wakes those who wait. A wait ends
 * with the answer, with a fatal signal, or after some time: supply may be held up by
 * tasks of higher priority.
 *
 * Locking: bits are set and taken by atomic operations. sol_want() may be called from
 * any context: it wakes the thread itself, not through a wait queue, whose lock sleeps
 * on RT.
 */
#ifndef SOLOIST_WANT_H
#define SOLOIST_WANT_H

#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "../group/group.h"

#define SOL_WANT_CHUNK	1024	/* group ids that share a bit of ->chunks */
#define SOL_WANT_CHUNKS	(SOL_MAX_GROUPS / SOL_WANT_CHUNK + 1)
#define SOL_WANT_QUEUES	16

/**
 * struct sol_wants - the wants of one node
 * @thread: serves them
 * @nid: the node
 * @urgent: tasks of real-time priority that wait: the thread has one, too, as long as
 *	there are some
 * @chunks: chunks of @groups with a bit set
 * @groups: ids of groups that want frames
 * @last: the group that was served last of those with a bit in @waited; the next one
 *	comes after it
 * @last_wanted: the same of the others
 * @n_waited: bits that are set in @waited
 * @waited: ids of groups with a fault that waits, until a pass for it begins
 * @answered: those who wait, by the group's id
 */
struct sol_wants {
	struct task_struct *thread;
	int nid;
	atomic_t urgent;
	u64 chunks;
	unsigned long groups[BITS_TO_LONGS(SOL_WANT_CHUNKS * SOL_WANT_CHUNK)];
	u16 last;
	u16 last_wanted;
	atomic_t n_waited;
	unsigned long waited[BITS_TO_LONGS(SOL_WANT_CHUNKS * SOL_WANT_CHUNK)];
	wait_queue_head_t answered[SOL_WANT_QUEUES];
};

/* By node; NULL: nobody supplies it. Written at load and unload only. */
extern struct sol_wants *sol_wants[];

/*
 * Does a thread supply node @nid? Not one that came after the module was loaded: no frame of
 * it has a colour (array.c).
 */
static inline bool sol_want_supplied(int nid)
{
	return READ_ONCE(sol_wants[nid]);
}

/* Group @id wants frames on node @nid. Any context. */
void sol_want(u16 id, int nid);

/**
 * sol_want_wait() - want frames, and wait for supply's answer
 * @id: the group
 * @nid: the node
 *
 * Sleeps for a second at most. Return: there was an answer, or the group has no
 * cells on the node any more.
 */
bool sol_want_wait(u16 id, int nid);

/**
 * sol_want_next() - for the thread: the next group that wants frames
 * @wants: of its node
 * @waits: becomes whether a fault of the group waits
 *
 * From now on it wants none any more. Return: its id; 0: there is none.
 */
u16 sol_want_next(struct sol_wants *wants, bool *waits);

/* Does a fault wait, for whom no pass has begun? */
static inline bool sol_want_waited(const struct sol_wants *wants)
{
	return atomic_read(&wants->n_waited);
}

/* For the thread, between two passes: as urgent as those who wait. */
void sol_want_settle(struct sol_wants *wants);

/* For the thread: does a fault of another group than @id wait? */
static inline bool sol_want_others_wait(const struct sol_wants *wants, u16 id)
{
	return atomic_read(&wants->n_waited) > test_bit(id, wants->waited);
}

/* For the thread: group @id wants frames on, in its turn; @waits: its faults wait. */
void sol_want_again(struct sol_wants *wants, u16 id, bool waits);

/* For the thread: wake those who wait for an answer for group @id. May sleep. */
void sol_want_answer(struct sol_wants *wants, u16 id);

struct sol_wants *sol_wants_new(int nid);	/* NULL: no memory */
void sol_wants_free(struct sol_wants *wants);

#endif /* SOLOIST_WANT_H */
