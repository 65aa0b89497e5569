/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: pages that move because a user asked for it.
 *
 *   batch.c    pages that migrate together, to targets of our choice
 *   job.c      one migration at a time, and its report
 *   evict.c    what others have in a group's colours goes elsewhere
 *   recolor.c  what a group's tasks have already comes into its colours
 */
#ifndef SOLOIST_MIGRATE_H
#define SOLOIST_MIGRATE_H

int sol_migrate_init(void);	/* 0: what the kernel lacks is refused when asked for */

#endif /* SOLOIST_MIGRATE_H */
