// SPDX-License-Identifier: GPL-2.0
/*
 * Time that a CPU stood still is nobody's: the fair server must not count it.
 *
 * The server (6.12 on) lets fair tasks go before real-time ones if they have not
 * run for 50 ms within a second, until they have. On a CPU that stands still for
 * most of the time they never can. Then they go first at the beginning of each
 * period and use its budget, the CPU stands still again, and real-time tasks, on
 * PREEMPT_RT those of RCU and of timers too, never run.
 *
 * So at the end of a stop, if the server has fair tasks go first, it is sent
 * back to wait anew, unless they waited while the CPU did run: for 900 ms of that
 * time without running for 50 ms of it. (Without stops it is 950 ms; a CPU that
 * stands still for less than 5 % of the time is left as it is.) Then it is their
 * turn, as on any CPU, but for a second of the clock at most, or a CPU that
 * seldom runs would have no real-time tasks for minutes.
 *
 * How long they ran is told by the server: it goes off the later the more they
 * have, and has a runtime that they use up. Which server is the CPU's is learned
 * when a task that it let go first uses up a budget; until then fair tasks may
 * go first in one period.
 *
 * Before 6.12 real-time throttling does for fair tasks what the server does. It
 * counts how long real-time tasks run in a second of the clock: on a CPU that
 * stands still for more than 50 ms of it they are never throttled, and fair tasks
 * may starve. Nothing of ours changes that; docs/reference/guard.md says what to set.
 *
 * Locking: on the CPU, which owns struct sol_guard_fair; the server is its run
 * queue's, whose lock is taken with interrupts off and nothing of ours held.
 */
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/minmax.h>

#include "../compat/fair_server.h"
#include "../hook/table.h"
#include "fair.h"

#ifdef SOL_RQ_UNLOCK_INLINE
static int bind_unlock(void)
{
	sol_rq_lock_at = sol_member_at("rq.__lock");
	if (sol_rq_lock_at < 0)
		return -ENOENT;
#ifdef CONFIG_SCHED_CORE
	sol_rq_core_at = sol_member_at("rq.core");
	sol_rq_shared_at = sol_member_at("rq.core_enabled");
	if (sol_rq_core_at < 0 || sol_rq_shared_at < 0)
		return -ENOENT;
#endif
	static_call_update(sol_rq_unlock, sol_rq_unlock_here);
	return 0;
}
#elif defined(SOL_FAIR_SERVER)
static int bind_unlock(void)
{
	return sol_bind(sol_rq_unlock, "raw_spin_rq_unlock");
}
#endif

int sol_guard_fair_init(void)
{
#ifdef SOL_FAIR_SERVER
	return sol_bind(sol_rq_lock, "raw_spin_rq_lock_nested") ?:
	       bind_unlock() ?:
	       sol_bind(sol_rq_clock, "update_rq_clock") ?:
	       sol_bind(sol_server_stop, "dl_server_stop") ?:
	       sol_bind(sol_server_start, "dl_server_start");
#else
	return 0;
#endif
}

void sol_guard_fair_stops(struct sol_guard_fair *fair)
{
	struct sched_dl_entity *server = sol_server_of(current);

	if (server)
		fair->server = server;
}

/* When it had fair tasks go first, by the run queue's clock. */
static u64 went_off(const struct sched_dl_entity *server)
{
	return server->deadline - server->dl_deadline;
}

/* When it will, if they don't run until then. */
static u64 goes_off(const struct sched_dl_entity *server)
{
	return server->deadline - server->runtime;
}

/* How long fair tasks have run since the server was sent back. */
static s64 have_run(const struct sol_guard_fair *fair)
{
	const struct sched_dl_entity *server = fair->server;
	s64 before = went_off(server) - fair->goes_off;

	return max_t(s64, before, 0) + server->dl_runtime - server->runtime;
}

/*
 * @open: ns that the CPU has run for, @ran and @stood: that it has, and has not,
 * since this was last asked. What fair tasks wait for begins before it is seen:
 * the server had waited for a second but for its runtime, less what it stood.
 */
static bool waited(struct sol_guard_fair *fair, u64 open, s64 ran, s64 stood)
{
	const struct sched_dl_entity *server = fair->server;
	s64 wait = server->dl_deadline - server->dl_runtime;

	fair->ran += have_run(fair);
	if (fair->ran >= server->dl_runtime) {
		fair->ran = 0;
		fair->waits_since = open - clamp_t(s64, wait - stood, 0, ran);
	}
	return (s64)(open - fair->waits_since) >= wait - server->dl_runtime;
}

static bool has_turn(struct sol_guard_fair *fair, u64 now, u64 stopped_ns)
{
	const struct sched_dl_entity *server = fair->server;
	u64 open = now - stopped_ns;
	u64 ran = open - fair->open, stood = stopped_ns - fair->stopped_ns;

	fair->open = open;
	fair->stopped_ns = stopped_ns;
	if (fair->turn && fair->turn == went_off(server)) {
		if (now < fair->turn_ends)
			return true;
		fair->ran = server->dl_runtime;	/* as good as that */
	}
	if (!waited(fair, open, ran, stood))
		return false;
	fair->turn = went_off(server);
	fair->turn_ends = now + server->dl_deadline;
	return true;
}

static void send_back(struct sol_guard_fair *fair)
{
	sol_server_restart(fair->server);
	fair->goes_off = goes_off(fair->server);
	fair->turn = 0;
}

void sol_guard_fair_goes_on(struct sol_guard_fair *fair, u64 stopped_ns)
{
	struct sched_dl_entity *server = fair->server;
	unsigned long flags;

	if (!server || !sol_server_queued(server))
		return;
	local_irq_save(flags);
	sol_server_lock(server);
	if (sol_server_queued(server) &&
	    !has_turn(fair, ktime_get_ns(), stopped_ns))
		send_back(fair);
	sol_server_unlock(server);
	local_irq_restore(flags);
}
