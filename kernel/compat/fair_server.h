/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fair server: since 6.12 each CPU has a deadline entity that runs its fair tasks
 * before real-time ones when they have waited too long. It replaces real-time
 * throttling. struct sched_dl_entity is in a header for modules and may be changed
 * under its run queue's lock, as the kernel's debugfs files do. Included by
 * guard/fair.c only.
 */
#ifndef SOLOIST_COMPAT_FAIR_SERVER_H
#define SOLOIST_COMPAT_FAIR_SERVER_H

#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/static_call.h>

#include "rows.h"

#ifdef SOL_FAIR_SERVER

typedef void sol_rq_lock_fn(struct rq *rq, int subclass);
typedef void sol_rq_fn(struct rq *rq);
typedef void sol_server_fn(struct sched_dl_entity *server);
DEFINE_STATIC_CALL_NULL(sol_rq_lock, sol_rq_lock_fn);
DEFINE_STATIC_CALL_NULL(sol_rq_unlock, sol_rq_fn);
DEFINE_STATIC_CALL_NULL(sol_rq_clock, sol_rq_fn);
DEFINE_STATIC_CALL_NULL(sol_server_stop, sol_server_fn);
DEFINE_STATIC_CALL_NULL(sol_server_start, sol_server_fn);

/*
 * raw_spin_rq_unlock() became inline after 6.18; struct rq is private, so the
 * kernel's own type information says where its lock is. With core scheduling
 * siblings share one.
 */
#ifdef SOL_RQ_UNLOCK_INLINE
static int sol_rq_lock_at, sol_rq_core_at, sol_rq_shared_at = -ENOENT;

static void sol_rq_unlock_inline(struct rq *rq)
{
	void *owner = rq;

	if (sol_rq_shared_at >= 0 && *(unsigned int *)(owner + sol_rq_shared_at))
		owner = *(void **)(owner + sol_rq_core_at);
	raw_spin_unlock((raw_spinlock_t *)(owner + sol_rq_lock_at));
}
#endif

/* The server that lets @task run; NULL: it runs by itself. */
static inline struct sched_dl_entity *
sol_server_of(const struct task_struct *task)
{
	return task->dl_server;
}

/* Do fair tasks go before real-time ones? A hint without the lock. */
static inline bool sol_server_queued(const struct sched_dl_entity *server)
{
	return !RB_EMPTY_NODE(&server->rb_node);
}

/* Interrupts off, on the server's CPU. */
static inline void sol_server_lock(struct sched_dl_entity *server)
{
	static_call(sol_rq_lock)(server->rq, 0);
}

static inline void sol_server_unlock(struct sched_dl_entity *server)
{
	static_call(sol_rq_unlock)(server->rq);
}

/*
 * Back to waiting until fair tasks starve. The lock is not taken as the scheduler
 * takes it (rq_pin_lock() is private), so that with WARN_DOUBLE_CLOCK, a feature
 * that is off by default, updating the clock may warn.
 */
static inline void sol_server_restart(struct sched_dl_entity *server)
{
	static_call(sol_rq_clock)(server->rq);
	static_call(sol_server_stop)(server);
	server->dl_defer_running = 0;
	static_call(sol_server_start)(server);
}

#else

static inline struct sched_dl_entity *
sol_server_of(const struct task_struct *task)
{
	return NULL;
}

static inline bool sol_server_queued(const struct sched_dl_entity *server)
{
	return false;
}

static inline void sol_server_lock(struct sched_dl_entity *server)
{
}

static inline void sol_server_unlock(struct sched_dl_entity *server)
{
}

static inline void sol_server_restart(struct sched_dl_entity *server)
{
}

#endif

#endif /* SOLOIST_COMPAT_FAIR_SERVER_H */
