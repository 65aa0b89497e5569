/* SPDX-License-Identifier: GPL-2.0 */
/* rmdir(2) of a directory, one of whose files is being read or written. */
#ifndef SOLOIST_RMDIR_H
#define SOLOIST_RMDIR_H

#include <linux/types.h>

struct config_item;

#define SOL_LOOK_MS	100	/* who sleeps looks so often whether it shall end */

/**
 * sol_rmdir_waits() - does somebody wait to remove the directory?
 * @dir: one of whose files is read or written; NULL: there is none to wait for
 *
 * configfs has rmdir(2) wait for the reads and writes of the directory's files, and keep
 * all others from the directory above meanwhile. So what takes long ends then.
 */
bool sol_rmdir_waits(const struct config_item *dir);

#endif /* SOLOIST_RMDIR_H */
