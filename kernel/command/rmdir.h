/* SPDX-License-Identifier: GPL-2.0 */
/* rmdir(2) of a directory, one of whose files is being read or written. */
#ifndef SOLOIST_RMDIR_H
#define SOLOIST_RMDIR_H

#include <linux/fs.h>

#define SOL_LOOK_MS	100	/* who sleeps looks so often whether it shall end */

/**
 * struct sol_rmdir - what was seen of a directory
 * @dir: the directory; NULL: there is none to wait for
 * @locked: jiffies since when it was seen locked, | 1; 0: it was not, when last seen
 */
struct sol_rmdir {
	struct inode *dir;
	unsigned long locked;
};

/**
 * sol_rmdir_waits() - does somebody wait to remove the directory?
 * @watch: by whom it is read or written; ask often
 *
 * configfs has rmdir(2) wait for the reads and writes of the directory's files, and keep
 * all others from the directory above meanwhile. So what takes long ends then.
 *
 * It has the directory locked while it waits, and others lock it for a moment only.
 */
bool sol_rmdir_waits(struct sol_rmdir *watch);

#endif /* SOLOIST_RMDIR_H */
