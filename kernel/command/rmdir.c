// SPDX-License-Identifier: GPL-2.0
/*
 * Who removes a directory waits for its files.
 *
 * Locking: the directory's, tried and never waited for.
 */
#include <linux/jiffies.h>

#include "rmdir.h"

/* Locked, look after look, for longer than others lock it. */
bool sol_rmdir_waits(struct sol_rmdir *watch)
{
	if (!watch->dir)
		return false;
	if (inode_trylock_shared(watch->dir)) {
		inode_unlock_shared(watch->dir);
		watch->locked = 0;
	} else if (!watch->locked) {
		watch->locked = jiffies | 1;
	} else {
		return time_after(jiffies,
				  watch->locked + msecs_to_jiffies(SOL_LOOK_MS));
	}
	return false;
}
