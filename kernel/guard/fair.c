// SPDX-License-Identifier: GPL-2.0
/*
 * The fair server and CPUs that stand still: the time of a stop must not count.
 *
 * The scheduler's fair server (6.12 on) lets fair tasks run before real-time ones if
 * they have not run for 50 ms within a second, until they have. On a CPU that stands
 * still most of the time they never can. Then they would run first in each period and
 * use up its budget, the CPU would stand still again, and real-time tasks, on
 * PREEMPT_RT those of RCU and of timers too, would never run.
 *
 * So at the end of a stop, a server that lets fair tasks go first is sent back to wait
 * anew, unless they have starved while the CPU did run: for 900 ms of that time they
 * did not run for 50 ms. (Without stops the limit is 950 ms; a CPU that stands still
 * for less than 5 % of the time is left alone.) Then they may go first, as on any CPU,
 * but for one second at most: a CPU that seldom runs would have no real-time tasks for
 * minutes otherwise.
 *
 * The server tells how long fair tasks ran: it goes off later the more they have, and
 * they use up its runtime. We learn which server is the CPU's when a task that it let
 * go first uses up a budget; until then fair tasks may go first in one period.
 *
 * Would it do to make tasks sleep on their way to user space? That is `stop user`
 * (hold.c): its CPU goes on, runs its kernel threads, and needs none of this. But a task
 * that writes a file in one system call is not stopped until the call ends: 256 pages
 * instead of 10 in a period (tests/guest/guard/hold.c). That traffic is only counted, and a
 * bound on it is what `stop anywhere` is for.
 *
 * Before 6.12 real-time throttling did this for fair tasks. It counts how long
 * real-time tasks run in a second of the clock. On a CPU that stands still for more
 * than 50 ms of that they are never throttled, and fair tasks may starve. We don't
 * change that; docs/reference/guard.md says what to set.
 *
 * Locking: struct sol_guard_fair is used on its CPU only. The server belongs to the run
 * queue, whose lock is taken with interrupts off and none of our locks held.
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
	static_call_update(sol_rq_unlock, sol_rq_unlock_inline);
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

/* When @server let fair tasks go first, by the run queue's clock. */
static u64 went_off(const struct sched_dl_entity *server)
{
	return server->deadline - server->dl_deadline;
}

/* When @server will, if they don't run until then. */
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
 * Have fair tasks starved? @open: ns that the CPU has run in all. @ran, @stood: ns that
 * it ran and stood still since the last call. Their wait began before it was seen: the
 * server had waited for a second less its runtime, less the time of stops.
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

static bool may_go_first(struct sol_guard_fair *fair, u64 now, u64 stopped_ns)
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
	    !may_go_first(fair, ktime_get_ns(), stopped_ns))
		send_back(fair);
	sol_server_unlock(server);
	local_irq_restore(flags);
}
