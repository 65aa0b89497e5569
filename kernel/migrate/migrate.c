// SPDX-License-Identifier: GPL-2.0
/*
 * Migrate: what all of it needs of the kernel is found at load.
 *
 * Locking: none.
 */
#include "batch.h"
#include "evict.h"
#include "migrate.h"
#include "recolor.h"

int sol_migrate_init(void)
{
	sol_batch_init();
	sol_evict_init();
	sol_recolor_init();
	return 0;
}
