// SPDX-License-Identifier: GPL-2.0
/*
 * Time that a CPU stood still is nobody's: the fair server must not count it.
 *
 * The server (6.12 on) sees fair tasks that have not run for 950 ms of a
 * second, and lets them go before real-time ones, for 50 ms. On a CPU that
 * stands still most of the time they never run for so long; once they go first,
 * they use the budget at the beginning of each period, the CPU stands still
 * again, and real-time tasks, on PREEMPT_RT those of RCU and of timers too,
 * never run.
 *
 * So at the end of a stop, if the server has its turn, it is sent back to wait
 * anew, unless fair tasks starved in the time in which the CPU did run: then its
 * turn is due, and lasts as long as it does on any CPU. Which server is the
 * CPU's is learned when one of its tasks uses up a budget; until then fair
 * tasks may go first in one period.
 *
 * Before 6.12 real-time throttling does for fair tasks what the server does. It
 * counts how long real-time tasks run in a second of the clock: on a CPU that
 * stands still for more than 50 ms of it they are never throttled, and fair tasks
 * may starve. Nothing of ours changes that; docs/guard.md says what to set.
 *
 * Locking: on the CPU; the server is its run queue's, whose lock is taken with
 * interrupts off and nothing of ours held.
 */
#include <linux/irqflags.h>
#include <linux/ktime.h>

#include "compat/fair_server.h"
#include "guard.h"
#include "guard_fair.h"

int sol_guard_fair_init(void)
{
	return sol_server_bind();
}

void sol_guard_fair_stops(struct sol_guard_fair *fair)
{
	struct sched_dl_entity *server = sol_server_of(current);

	if (server)
		fair->server = server;
}

/* When the server's present period began, by the run queue's clock. */
static u64 begun_at(const struct sched_dl_entity *server)
{
	return server->deadline - server->dl_deadline;
}

/*
 * @open: ns that the CPU has run for. A server that was sent back comes again
 * after 950 ms, and later the more fair tasks have run; if they have for 50 ms
 * it began anew, and so do we.
 */
static bool turn_is_due(struct sol_guard_fair *fair, u64 open)
{
	const struct sched_dl_entity *server = fair->server;
	u64 begun = begun_at(server);

	if (begun == fair->due)
		return true;
	if (begun - fair->sent_back > server->dl_deadline)
		fair->waits_since = open;
	if (open - fair->waits_since < server->dl_deadline - server->dl_runtime)
		return false;
	fair->due = begun;
	return true;
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
	    !turn_is_due(fair, ktime_get_ns() - stopped_ns)) {
		sol_server_restart(server);
		fair->sent_back = begun_at(server);
	}
	sol_server_unlock(server);
	local_irq_restore(flags);
}
