/* SPDX-License-Identifier: GPL-2.0 */
/* What the page allocator keeps to itself (mm/internal.h), 6.1 to 6.12. */
#ifndef SOLOIST_COMPAT_ALLOC_H
#define SOLOIST_COMPAT_ALLOC_H

#include <linux/mmzone.h>
#include <linux/nodemask.h>

/* The beginning of it; the same in all supported versions. */
struct alloc_context {
	struct zonelist *zonelist;
	nodemask_t *nodemask;
	struct zoneref *preferred_zoneref;
	int migratetype;
	enum zone_type highest_zoneidx;
	bool spread_dirty_pages;
};

#endif /* SOLOIST_COMPAT_ALLOC_H */
