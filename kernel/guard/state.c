// SPDX-License-Identifier: GPL-2.0
/* The guard after loading: nothing is reserved, so nothing is counted. */
#include "../compat/raw_event.h"
#include "state.h"

DEFINE_MUTEX(sol_guard_mutex);
int sol_guard_unable;

struct sol_guard sol_guard = {
	.lock = __RAW_SPIN_LOCK_UNLOCKED(sol_guard.lock),
	.master = -1,
	.set = {
		.rules = { .period = 1000, .line = 64, .ewma = 192 },
		.name = { SOL_TRAFFIC, "" },
		.event = { SOL_TRAFFIC_EVENT },
		.kernel = true,
	},
};
