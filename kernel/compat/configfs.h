/* SPDX-License-Identifier: GPL-2.0 */
/* A directory of configfs: what configfs notes of it (fs/configfs/configfs_internal.h). */
#ifndef SOLOIST_COMPAT_CONFIGFS_H
#define SOLOIST_COMPAT_CONFIGFS_H

#include <linux/configfs.h>
#include <linux/dcache.h>

/*
 * The beginning of struct configfs_dirent, the same from 5.5 to 7.3. configfs is a module on
 * most kernels, and the kernel's type information lacks it: so what points back at us tells.
 */
struct sol_dirent {
	atomic_t count;
	int dependents;
	struct list_head sibling;
	struct list_head children;
	int links;
	void *element;
	int type;
	umode_t mode;
	struct dentry *dentry;
};

#define SOL_DIRENT_DROPPING	0x0100	/* rmdir(2) has begun */

/* The flags of the directory of @item; -1: this kernel has another struct. */
static inline int sol_dirent_type(const struct config_item *item)
{
	const struct sol_dirent *sd = item->ci_dentry->d_fsdata;

	if (!sd || sd->element != item || sd->dentry != item->ci_dentry)
		return -1;
	return READ_ONCE(sd->type);
}

#endif /* SOLOIST_COMPAT_CONFIGFS_H */
