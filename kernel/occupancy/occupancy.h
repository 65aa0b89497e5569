/* SPDX-License-Identifier: GPL-2.0 */
/* Occupancy: who holds the memory of a group's colours. */
#ifndef SOLOIST_OCCUPANCY_H
#define SOLOIST_OCCUPANCY_H

#include <linux/ktime.h>
#include <linux/types.h>

struct config_item;
struct page;
struct sol_group;

/* Who holds a frame. */
enum sol_holder {
	SOL_HELD_OWN,		/* the group: handed out to it */
	SOL_HELD_GROUPS,	/* another group */
	SOL_HELD_ANON,		/* a task: anonymous memory that no group handed out */
	SOL_HELD_MAPPED,	/* page cache that a task maps */
	SOL_HELD_CACHE,		/* page cache that no task maps */
	SOL_HELD_KERNEL,	/* the kernel: slab, page tables, stacks, firmware */
	SOL_HELD_LISTED,	/* nobody: free, in this module's lists */
	SOL_HELD_FREE,		/* nobody: free, the kernel's */
	SOL_N_HELD
};

extern const char *const sol_holder_name[SOL_N_HELD];

/**
 * struct sol_occupancy - who holds the frames of a colour set
 * @held: frames, by holder. If sampled, estimates
 * @pinned: of anon, mapped and cache: pinned for a device, so they can't move
 * @unevictable: of anon, mapped and cache: locked in memory (mlock(), ramfs)
 * @looked: frames that were looked at
 * @one_of: one region of so many was looked at; 1: all were; 0: there was no look
 * @began: when it began
 * @took_us: how long it took, microseconds
 */
struct sol_occupancy {
	u64 held[SOL_N_HELD];
	u64 pinned;
	u64 unevictable;
	u64 looked;
	u32 one_of;
	ktime_t began;
	u64 took_us;
};

/**
 * sol_occupancy_take() - look who holds the memory of a group's colours
 * @group: a group that exists
 * @dir: its directory
 * @all: look at all frames, however long that takes; else at 4 Mi of the machine's at most
 *	(16 GiB of 4 KiB pages), a sample of a larger one
 * @o: becomes the answer; no frames if the group does not colour
 *
 * In the caller's time; may sleep. Memory changes meanwhile: each frame is counted as it
 * was when the look came to it. So the sum is right, but a page that moves may be seen
 * twice or not at all.
 *
 * Return: 0, -ENOMEM, -EINTR: a signal came, or -ENOENT: the group goes.
 */
int sol_occupancy_take(struct sol_group *group, const struct config_item *dir, bool all,
		       struct sol_occupancy *o);

/* Who holds the frame of @page, as seen by the group of @id. */
enum sol_holder sol_holder_of(struct page *page, u16 id, bool *pinned,
			      bool *unevictable);

#endif /* SOLOIST_OCCUPANCY_H */
