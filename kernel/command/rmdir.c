// SPDX-License-Identifier: GPL-2.0
/*
 * Who removes a directory waits for its files.
 *
 * That somebody has the directory locked tells nothing: any user can keep it locked nearly all
 * the time, by trying to make something in it. So configfs' own mark is read.
 *
 * Locking: none. The mark is set before rmdir(2) waits, and goes if that is killed.
 */
#include <linux/printk.h>

#include "../compat/configfs.h"
#include "rmdir.h"

bool sol_rmdir_waits(const struct config_item *dir)
{
	int type = dir ? sol_dirent_type(dir) : 0;

	if (type < 0) {
		pr_warn_once("this kernel's configfs is another: who removes a group waits until what is written to its files is done\n");
		return false;
	}
	return type & SOL_DIRENT_DROPPING;
}
