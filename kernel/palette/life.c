// SPDX-License-Identifier: GPL-2.0
/*
 * Groups: numbers, lifetimes, colours.
 *
 * A group is found by its number in sol_groups[]. It is born with one
 * reference (of its directory, or of whoever makes it for a task), every task
 * in it holds another, and it is retired when it is removed or when the last
 * reference goes: it gives its colours back to the palette and colours no
 * more. Its number and memory go when its last frame has come back too: frames
 * remember their owner by number, and pages outlive tasks (tmpfs, pipes).
 *
 * Differs from the papers: CAMC and TintMalloc keep colours in the task
 * itself, so a colour is free again while pages of it are still in use. Here
 * the automatic assignment leaves out colours that still hold pages.
 *
 * Locking: sol_group_mutex guards sol_groups[] (writes), the palette, every
 * group's colours and fate, and the map. It nests inside mmap_lock (a fault
 * may grow a group), so nothing under it may touch user memory. reap_mutex is
 * outside of it. sol_group_put() is for any context.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "../compat/workqueue.h"
#include "life.h"
#include "../hook/hook.h"
#include "../group/member.h"
#include "quota.h"
#include "../command/status.h"
#include "../frames/giveback.h"
#include "../frames/magazine.h"
#include "../frames/prefill.h"
#include "../frames/remap.h"
#include "../frames/store.h"
#include "../trace/trace.h"

static struct sol_map maps[2];	/* the one in use, and one to parse into */
static struct sol_map *map;	/* NULL: none yet */
static struct sol_palette palette;
static void *palette_mem;
static struct sol_group_count count;
static u32 last_id;

typedef void lru_drain_fn(void);
DEFINE_STATIC_CALL_NULL(sol_lru_drain, lru_drain_fn);

#define DRAIN_JIFFIES	(HZ / 10)
#define DRAINS		3	/* after a removal, at most, a second apart */

static void drain_fn(struct work_struct *work);
static DECLARE_WORK(drain_work, drain_fn);
static DECLARE_COMPLETION(drained);

static void reap_fn(struct work_struct *work);
static LIST_HEAD(lingering);		/* dead, frames perhaps in use */
static DEFINE_MUTEX(reap_mutex);	/* guards lingering, drains */
static u32 drains;			/* that the lingering may still have, ... */
static unsigned long next_drain;	/* ... and when, in jiffies */
static bool leaving;
static DECLARE_DELAYED_WORK(linger_work, reap_fn);

/* ---- Colour sets ---- */

static void colors_attach(struct sol_colors *colors, unsigned long *bits)
{
	colors->sets = bits;
	colors->llc = bits + SOL_LONGS(map->n_bank_sets);
}

static size_t colors_bytes(const struct sol_map *m)
{
	return (SOL_LONGS(m->n_bank_sets) + SOL_LONGS(m->n_llc)) *
	       sizeof(unsigned long);
}

/* An empty colour set (any colour) for @m; NULL: no memory. */
struct sol_colors *sol_colors_new(const struct sol_map *m)
{
	struct sol_colors *colors;

	colors = kvzalloc(sizeof(*colors) + colors_bytes(m), GFP_KERNEL);
	if (colors)
		colors_attach(colors, (unsigned long *)(colors + 1));
	return colors;
}

void sol_colors_copy(const struct sol_map *m, struct sol_colors *to,
		     const struct sol_colors *from)
{
	bitmap_copy(to->sets, from->sets, m->n_bank_sets);
	bitmap_copy(to->llc, from->llc, m->n_llc);
	to->by_bank = from->by_bank;
	to->by_llc = from->by_llc;
	to->exclusive = from->exclusive;
	to->realtime = from->realtime;
}

void sol_colors_free(struct sol_colors *colors)
{
	kvfree(colors);
}

static bool colors_any(const struct sol_colors *colors)
{
	return colors->by_bank || colors->by_llc;
}

/* What the palette knows of @colors: a group that does not colour owns none. */
static const struct sol_colors *owned(const struct sol_colors *colors)
{
	return colors_any(colors) ? colors : NULL;
}

/* The node with cells nearest to @node. */
static u8 home_of(const struct sol_cells *cells, u32 node)
{
	u32 best = node, i;

	if (!node_possible(node) ||
	    cells->first[node] < cells->first[node + 1])
		return node;
	for (i = 0; i < SOL_MAX_NODES; i++) {
		if (cells->first[i] == cells->first[i + 1] || !node_possible(i))
			continue;
		if (best == node || node_distance(node, i) <
				    node_distance(node, best))
			best = i;
	}
	return best;
}

/* The cells of @colors; NULL: it does not colour; or an ERR_PTR. */
static struct sol_cells *cells_new(const struct sol_colors *colors)
{
	struct sol_cells *cells;
	u32 n, i, node = 0;
	const u32 *first;

	if (!colors_any(colors))
		return NULL;
	n = sol_colors_cells(map, colors, NULL, 0);
	cells = kvzalloc(struct_size(cells, cell, n), GFP_KERNEL);
	if (!cells)
		return ERR_PTR(-ENOMEM);
	cells->n = sol_colors_cells(map, colors, cells->cell, n);
	for (i = 0; i < n; i++)
		for (; node < sol_map_set_node(map, cells->cell[i] /
					       map->n_llc); node++)
			cells->first[node + 1] = i;
	while (node < SOL_MAX_NODES)
		cells->first[++node] = n;
	for (node = 0; node < SOL_MAX_NODES; node++) {
		first = cells->first + node;
		if (first[0] < first[1])
			cells->per_set[node] =
				sol_cells_per_set(map, cells->cell + first[0],
						  first[1] - first[0]);
	}
	for (node = 0; node < SOL_MAX_NODES; node++)
		cells->home[node] = home_of(cells, node);
	return cells;
}

/* ---- The map and the palette ---- */

const struct sol_map *sol_group_map(void)
{
	return READ_ONCE(map);
}

static int map_install(struct sol_map *new, void **mem)
{
	struct sol_err err;
	int ret;

	*mem = kvzalloc(sol_palette_bytes(new), GFP_KERNEL);
	if (!*mem)
		return sol_deny(-ENOMEM, "map: no memory for the palette");
	ret = sol_remap(new, &err);
	if (ret)
		return sol_deny(ret, "map: %s", err.text);
	WRITE_ONCE(map, new);
	swap(palette_mem, *mem);
	sol_palette_init(&palette, map, palette_mem);
	palette.in_use = sol_store_used_in;
	return 0;
}

/**
 * sol_group_map_set() - take another address map
 * @text: of docs/reference/map-format.md
 * @len: its bytes
 *
 * Return: 0; -EINVAL if it is wrong or contradicts this machine; -EBUSY while
 * a group exists or its frames are in use; -ENOMEM. Words if refused.
 */
int sol_group_map_set(const char *text, size_t len)
{
	struct sol_map *spare;
	struct sol_err err;
	void *mem = NULL;
	int ret;

	mutex_lock(&sol_group_mutex);
	spare = &maps[map == &maps[0]];
	ret = sol_map_parse(spare, text, len, &err);
	if (ret)
		sol_deny(ret, "map: line %u: %s", err.line, err.text);
	else if (count.named || count.implicit || count.dead)
		ret = sol_deny(-EBUSY,
			       "map: %u groups, %u implicit ones and pages of %u removed ones are in use; remove them first",
			       count.named, count.implicit, count.dead);
	else
		ret = map_install(spare, &mem);
	mutex_unlock(&sol_group_mutex);
	kvfree(mem);
	return ret;
}

/* ---- Birth and death ---- */

static void group_free(struct sol_group *group)
{
	free_percpu(group->stats);
	kvfree(group->turn);
	kvfree(group);
}

static struct sol_group *group_alloc(const char *name)
{
	size_t head = ALIGN(sizeof(struct sol_group), sizeof(long));
	size_t bits = colors_bytes(map);
	struct sol_group *group;
	u32 i;

	group = kvzalloc(head + bits, GFP_KERNEL);
	if (!group)
		return NULL;
	group->turn = kvcalloc(map->n_nodes, sizeof(*group->turn), GFP_KERNEL);
	group->stats = alloc_percpu(struct sol_group_stats);
	if (!group->turn || !group->stats) {
		group_free(group);
		return NULL;
	}
	for (i = 0; i < map->n_nodes; i++)
		group->turn[i].rest = group->turn[i].evacuate =
			group->turn[i].full = jiffies;
	group->grow_rest = jiffies;
	colors_attach(&group->colors, (void *)group + head);
	strscpy(group->name, name, sizeof(group->name));
	atomic_set(&group->refs, 1);
	return group;
}

/* A number that no group has, after the last one given; 0: none left. */
static u16 free_id(void)
{
	u32 i;

	for (i = 0; i < SOL_MAX_GROUPS; i++) {
		last_id = last_id % SOL_MAX_GROUPS + 1;
		if (!rcu_access_pointer(sol_groups[last_id]))
			return last_id;
	}
	return 0;
}

static struct sol_group *group_make(const char *name, bool implicit)
{
	struct sol_group *group;
	u16 id;

	lockdep_assert_held(&sol_group_mutex);
	if (!map)
		return ERR_PTR(sol_deny(-ENXIO,
			"%s: no address map yet; write one to map first", name));
	id = free_id();
	if (!id)
		return ERR_PTR(sol_deny(-ENOSPC,
			"%s: %u groups exist, no number is left",
			name, SOL_MAX_GROUPS));
	group = group_alloc(name);
	if (!group)
		return ERR_PTR(sol_deny(-ENOMEM, "%s: no memory", name));
	group->id = id;
	group->implicit = implicit;
	*(implicit ? &count.implicit : &count.named) += 1;
	rcu_assign_pointer(sol_groups[id], group);
	return group;
}

/**
 * sol_group_new() - make a group without colours
 * @name: for messages
 * @implicit: not a directory's
 *
 * Return: the group with one reference, the caller's; or an ERR_PTR and words.
 */
struct sol_group *sol_group_new(const char *name, bool implicit)
{
	struct sol_group *group;

	mutex_lock(&sol_group_mutex);
	group = group_make(name, implicit);
	mutex_unlock(&sol_group_mutex);
	if (group != ERR_PTR(-ENOSPC))
		return group;

	reap_fn(NULL);		/* removed ones may have numbers */
	mutex_lock(&sol_group_mutex);
	group = group_make(name, implicit);
	mutex_unlock(&sol_group_mutex);
	return group;
}

/* Each of @cells keeps @frames for the group from the shrinker from now on. */
static void cells_keep(struct sol_cells *cells, u32 frames)
{
	u32 i;

	for (i = 0; cells && i < cells->n; i++) {
		u32 *keep = &sol_sites[cells->cell[i]].keep;

		WRITE_ONCE(*keep, *keep + frames - cells->keep);
	}
	if (cells)
		cells->keep = frames;
}

static u32 keep_of_each(const struct sol_group *group,
			const struct sol_cells *cells)
{
	return cells && cells->n ? DIV_ROUND_UP(group->reserve, cells->n) : 0;
}

/*
 * Publish @cells (NULL: colours no more); the old ones go after a grace period.
 * What was not to be found in the old ones may be in these.
 */
static void cells_publish(struct sol_group *group, struct sol_cells *cells)
{
	struct sol_cells *old;
	u32 i;

	old = rcu_replace_pointer(group->cells, cells,
				  lockdep_is_held(&sol_group_mutex));
	cells_keep(old, 0);
	cells_keep(cells, keep_of_each(group, cells));
	for (i = 0; i < map->n_nodes; i++) {
		WRITE_ONCE(group->turn[i].rest, jiffies);
		WRITE_ONCE(group->turn[i].evacuate, jiffies);
		WRITE_ONCE(group->turn[i].full, jiffies);
		WRITE_ONCE(group->turn[i].rests, 0);
		WRITE_ONCE(group->turn[i].fulls, 0);
	}
	if (old)
		kvfree_rcu(old, rcu);
}

/* Its last figures, for those who look at its files now and then. */
static void tell_removed(const struct sol_group *group)
{
	struct sol_group_stats sum;

	if (!trace_soloist_group_removed_enabled())
		return;
	sol_group_sum(group, &sum);
	trace_soloist_group_removed(group, &sum);
}

static void retire(struct sol_group *group)
{
	struct sol_err err;

	lockdep_assert_held(&sol_group_mutex);
	if (group->dead)
		return;
	tell_removed(group);
	WRITE_ONCE(group->dead, true);
	WRITE_ONCE(group->ephemeral, false);
	WRITE_ONCE(group->huge_ok, false);
	group->reserve = 0;
	cells_publish(group, NULL);
	if (colors_any(&group->colors))
		sol_palette_change(&palette, &group->colors, NULL, &err);
	group->colors.by_bank = false;
	group->colors.by_llc = false;
	*(group->implicit ? &count.implicit : &count.named) -= 1;
	count.dead++;
}

/* ---- What CPUs hold in batches ---- */

/*
 * Pages of ended tasks may wait for the LRU lists in an idle CPU's batch, for
 * minutes. All CPUs are asked for them, by a work of its own: a CPU that a
 * real-time task has for itself never answers, so nobody waits for the work but
 * for a moment, and without a lock.
 */
static void drain_fn(struct work_struct *work)
{
	static_call(sol_lru_drain)();
	complete_all(&drained);
	if (READ_ONCE(count.dead) && !READ_ONCE(leaving))
		mod_delayed_work(sol_unbound_wq(), &linger_work, 0);
}

static void drain_begin(void)
{
	if (!work_busy(&drain_work))
		reinit_completion(&drained);
	queue_work(sol_unbound_wq(), &drain_work);
}

/* What asks here may be any exec. */
static void drain_batches(void)
{
	drain_begin();
	wait_for_completion_killable_timeout(&drained, DRAIN_JIFFIES);
}

/* ---- Removed groups ---- */

/* Retire what lost its last reference; returns whether there was any. */
static bool reap_new(void)
{
	struct llist_node *first = llist_del_all(&sol_reap_list);
	struct sol_group *group;

	mutex_lock(&sol_group_mutex);
	llist_for_each_entry(group, first, reap) {
		retire(group);
		list_add_tail(&group->link, &lingering);
	}
	mutex_unlock(&sol_group_mutex);
	return first;
}

/* Frames of removed groups are in use: look again, and ask for what is in batches. */
static void linger(void)
{
	queue_delayed_work(sol_unbound_wq(), &linger_work, HZ);
	if (!drains || time_before(jiffies, next_drain))
		return;
	drains--;
	next_drain = jiffies + HZ;
	drain_begin();
}

/*
 * Free the dead. A fault that saw the group's cells may still count a frame,
 * hence the first grace period: after it their number can only fall. Whoever counted
 * the last one down may still look at the group: hence the second.
 */
static void reap_fn(struct work_struct *work)
{
	struct sol_group *group, *next;
	LIST_HEAD(gone);

	mutex_lock(&reap_mutex);
	if (reap_new()) {
		drains = DRAINS;
		next_drain = jiffies;
		synchronize_rcu();
	}

	mutex_lock(&sol_group_mutex);
	list_for_each_entry_safe(group, next, &lingering, link) {
		if (sol_group_used(group))
			continue;
		RCU_INIT_POINTER(sol_groups[group->id], NULL);
		sol_quota_end(group);
		count.dead--;
		list_move(&group->link, &gone);
	}
	mutex_unlock(&sol_group_mutex);

	if (!list_empty(&gone))
		synchronize_rcu();
	list_for_each_entry_safe(group, next, &gone, link)
		group_free(group);
	if (!list_empty(&lingering) && !READ_ONCE(leaving))
		linger();
	mutex_unlock(&reap_mutex);
}

/**
 * sol_group_remove() - rmdir: colour no more, move all tasks out
 * @group: the caller still holds its reference
 */
void sol_group_remove(struct sol_group *group)
{
	mutex_lock(&sol_group_mutex);
	retire(group);
	mutex_unlock(&sol_group_mutex);
	sol_member_evict(group);
}

/* ---- Ephemeral groups ---- */

static void (*forget_emptied)(struct sol_group *group);

void sol_group_when_emptied(void (*forget)(struct sol_group *group))
{
	forget_emptied = forget;
}

/* Retire one whose last task is gone; it comes with a reference. NULL: none. */
static struct sol_group *retire_emptied(void)
{
	struct sol_group *group, *found = NULL;
	u32 id;

	mutex_lock(&sol_group_mutex);
	for (id = 1; id <= SOL_MAX_GROUPS && !found; id++) {
		group = rcu_dereference_protected(sol_groups[id],
				lockdep_is_held(&sol_group_mutex));
		if (!group || !group->ephemeral || !group->peopled ||
		    atomic_read(&group->refs) != 1)
			continue;
		retire(group);
		sol_group_get(group);
		found = group;
	}
	mutex_unlock(&sol_group_mutex);
	return found;
}

/* The directory stays, until somebody removes it: it is a user's. */
static void emptied_fn(struct work_struct *work)
{
	struct sol_group *group;

	while ((group = retire_emptied())) {
		forget_emptied(group);
		sol_group_remove(group);
		sol_group_put(group);
	}
}

/**
 * sol_group_set_ephemeral() - remove a group when its last task goes, or not
 * @group: of a directory, which stays and says that the group is gone
 * @yes: one that no task was in yet waits for the first
 *
 * Return: 0; -ENOENT and words if it was removed.
 */
int sol_group_set_ephemeral(struct sol_group *group, bool yes)
{
	int err = 0;

	mutex_lock(&sol_group_mutex);
	if (group->dead)
		err = sol_deny(-ENOENT, "%s: the group was removed",
			       group->name);
	else
		WRITE_ONCE(group->ephemeral, yes);
	mutex_unlock(&sol_group_mutex);
	return err;
}

/* ---- Colours of a group ---- */

/**
 * sol_group_reserve() - keep frames in a group's lists
 * @group: referenced by the caller
 * @frames: 4 KiB each; 0: none
 *
 * They are zeroed; the shrinker leaves so many alone from then on.
 *
 * Return: how many there are now. Fewer than @frames: nothing has changed.
 */
u64 sol_group_reserve(struct sol_group *group, u64 frames)
{
	u64 have = frames ? sol_store_reserve(group, frames) : 0;
	struct sol_cells *cells;

	if (have < frames)
		return have;
	mutex_lock(&sol_group_mutex);
	if (!group->dead) {
		WRITE_ONCE(group->reserve, frames);
		cells = rcu_dereference_protected(group->cells,
				lockdep_is_held(&sol_group_mutex));
		cells_keep(cells, keep_of_each(group, cells));
	}
	mutex_unlock(&sol_group_mutex);
	return have;
}

/* After a change, without the mutex: this takes mmap_lock, and may last. */
static void recolored(struct sol_group *group, bool huge_ok_before)
{
	if (READ_ONCE(group->huge_ok) != huge_ok_before)
		sol_member_stay_all(group);
	if (READ_ONCE(group->reserve))
		sol_store_reserve(group, group->reserve);
}

static int recolor(struct sol_group *group, const struct sol_colors *colors)
{
	struct sol_cells *cells;
	struct sol_err err;
	int ret;

	lockdep_assert_held(&sol_group_mutex);
	if (group->dead)
		return sol_deny(-ENOENT, "%s: the group was removed",
				  group->name);
	cells = cells_new(colors);
	if (IS_ERR(cells))
		return sol_deny(-ENOMEM, "%s: no memory for %u cells",
				  group->name, map->n_cells);
	ret = sol_member_check_all(group, cells);
	if (ret)
		goto refuse;
	ret = sol_palette_change(&palette, owned(&group->colors),
				 owned(colors), &err);
	if (ret) {
		sol_deny(ret, "%s: %s", group->name, err.text);
		goto refuse;
	}
	sol_colors_copy(map, &group->colors, colors);
	group->n_sets = bitmap_weight(colors->sets, map->n_bank_sets);
	WRITE_ONCE(group->huge_ok,
		   colors->by_bank && !colors->by_llc &&
		   sol_map_block_order(map, colors->sets) >= 9);
	cells_publish(group, cells);
	return 0;
refuse:
	kvfree(cells);
	return ret;
}

/**
 * sol_group_edit() - give a group other colours
 * @group: may have tasks; pages that are placed stay where they are
 * @edit: changes a copy of the group's colours; 0, or an errno with words
 * @arg: for @edit
 *
 * Return: 0; what @edit says; -EBUSY if an exclusive group has one of them;
 * -EINVAL if no page can have them or a task of the group may not use their
 * nodes; -ENOENT if the group was removed. Refused, nothing has changed, and
 * there are words.
 */
int sol_group_edit(struct sol_group *group,
		   int (*edit)(struct sol_colors *colors, const void *arg),
		   const void *arg)
{
	bool huge_ok = group->huge_ok;
	struct sol_colors *colors;
	int err = -ENOMEM;

	mutex_lock(&sol_group_mutex);
	colors = sol_colors_new(map);
	if (colors) {
		sol_colors_copy(map, colors, &group->colors);
		err = edit(colors, arg);
		if (!err)
			err = recolor(group, colors);
	}
	sol_colors_free(colors);
	mutex_unlock(&sol_group_mutex);
	recolored(group, huge_ok);
	return err;
}

/*
 * Free colours for @want. A set that nobody owns may have pages in use, or only
 * at hand in some CPU's list: the lists are flushed once, and only then.
 */
static int palette_assign(const struct sol_want *want, struct sol_colors *out,
			  struct sol_err *err)
{
	u32 set;

	for (set = 0; set < map->n_bank_sets; set++)
		if (!palette.set[set].owners && sol_store_used_in(NULL, set)) {
			sol_magazines_flush();
			break;
		}
	return sol_palette_assign(&palette, want, out, err);
}

/* Free colours for @want into @out, as if @group owned none. */
static int assign(struct sol_group *group, const struct sol_want *want,
		  struct sol_colors *out)
{
	const struct sol_colors *own = owned(&group->colors);
	struct sol_err err, ignored;
	int ret = sol_quota_check(group, want->n_sets);

	if (ret)
		return ret;
	if (own)
		sol_palette_change(&palette, own, NULL, &ignored);
	ret = palette_assign(want, out, &err);
	/* Nobody else could take them meanwhile: this does not fail. */
	if (own)
		WARN_ON(sol_palette_change(&palette, NULL, own, &ignored));
	if (ret)
		return sol_deny(ret, "%s: %s", group->name, err.text);
	out->by_bank = true;
	out->by_llc = want->n_llc > 0;
	out->exclusive = true;
	out->realtime = want->realtime;
	return 0;
}

static int auto_once(struct sol_group *group, const struct sol_want *want)
{
	struct sol_colors *out;
	int err = -ENOMEM;

	mutex_lock(&sol_group_mutex);
	out = sol_colors_new(map);
	if (out) {
		err = assign(group, want, out);
		if (!err)
			err = recolor(group, out);
	}
	sol_colors_free(out);
	mutex_unlock(&sol_group_mutex);
	return err;
}

/**
 * sol_group_auto() - replace a group's colours by free ones (CAMC 3.4)
 * @group: becomes exclusive
 * @want: how many, and near which nodes
 *
 * Return: 0, -ENOSPC if not enough are free, -EDQUOT if a rule's limit is in
 * the way, or as sol_group_edit().
 */
int sol_group_auto(struct sol_group *group, const struct sol_want *want)
{
	bool huge_ok = group->huge_ok;
	int err = auto_once(group, want);

	/* Pages of ended tasks may wait in some idle CPU's batch. */
	if (err == -ENOSPC || err == -EDQUOT) {
		drain_batches();
		err = auto_once(group, want);
	}
	recolored(group, huge_ok);
	return err;
}

/* Add a free bank set near the current task to @to. */
static int grow_sets(struct sol_colors *to)
{
	struct sol_want want = {
		.n_sets = 1,
		.near = sol_member_near(current),
		.allowed = sol_member_nodes(current),
		.realtime = to->realtime,
	};
	struct sol_colors *more = sol_colors_new(map);
	struct sol_err err;
	int ret;

	if (!more)
		return -ENOMEM;
	ret = palette_assign(&want, more, &err);
	if (!ret)
		bitmap_or(to->sets, to->sets, more->sets, map->n_bank_sets);
	sol_colors_free(more);
	return ret;
}

/* Add an LLC colour that nobody has to @to. */
static int grow_llc(struct sol_colors *to)
{
	u32 i;

	for (i = 0; i < map->n_llc; i++)
		if (!palette.llc[i].owners) {
			sol_bit_set(to->llc, i);
			return 0;
		}
	return -ENOSPC;
}

static int grow(struct sol_group *group)
{
	struct sol_colors *to = sol_colors_new(map);
	int err;

	if (!to)
		return -ENOMEM;
	sol_colors_copy(map, to, &group->colors);
	err = sol_quota_check(group, group->n_sets + to->by_bank);
	if (!err)
		err = to->by_bank ? grow_sets(to) : grow_llc(to);
	else
		atomic64_inc(&group->quota->limited);
	if (!err)
		err = recolor(group, to);
	if (!err)
		sol_group_add(group, grown, 1);
	sol_colors_free(to);
	return err;
}

/* A group that found no free colour does not look for one again at once. */
static int grow_or_rest(struct sol_group *group)
{
	int err;

	if (time_before(jiffies, group->grow_rest))
		return -ENOSPC;
	err = grow(group);
	group->grow_rest = err ? jiffies + HZ / 10 : jiffies;
	return err;
}

/**
 * sol_group_grow() - CAMC: a task that ran out gets another free colour
 * @group: of the current task, which may hold mmap_lock and may sleep
 * @seen: cells that the caller found empty, ->n of its struct sol_cells
 *
 * Threads that run out together grow the group once.
 *
 * Return: 0 if there are more cells than @seen now; -ENOSPC if no colour is
 * free; another errno if the colours could not be had.
 */
int sol_group_grow(struct sol_group *group, u32 seen)
{
	struct sol_cells *cells;
	int err = -ENOENT;

	mutex_lock(&sol_group_mutex);
	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	if (!cells)
		goto out;
	err = 0;
	if (cells->n <= seen)
		err = grow_or_rest(group);
	cells = rcu_dereference_protected(group->cells,
					  lockdep_is_held(&sol_group_mutex));
	if (!err && cells->n <= seen)
		err = -ENOSPC;	/* the new colour holds no page */
out:
	mutex_unlock(&sol_group_mutex);
	return err;
}

/* ---- Reading ---- */

/* Bytes of the machine's memory in the group's colours; 0: does not colour. */
u64 sol_group_capacity(const struct sol_group *group)
{
	u64 bytes = 0;

	mutex_lock(&sol_group_mutex);
	if (colors_any(&group->colors))
		bytes = sol_colors_bytes(map, &group->colors);
	mutex_unlock(&sol_group_mutex);
	return bytes;
}

void sol_group_count(struct sol_group_count *out)
{
	mutex_lock(&sol_group_mutex);
	*out = count;
	mutex_unlock(&sol_group_mutex);
}

/* ---- Load and unload ---- */

/**
 * sol_group_init() - choose the generation, begin to follow tasks
 *
 * A task that ran through an earlier load may still have flags (it was being
 * forked while they were cleared): the random generation makes them void.
 */
int sol_group_init(void)
{
	INIT_WORK(&sol_reap_work, reap_fn);
	INIT_WORK(&sol_emptied_work, emptied_fn);
	do {
		get_random_bytes(&sol_generation, sizeof(sol_generation));
	} while (!sol_generation);
	return sol_bind(sol_lru_drain, "lru_add_drain_all") ?: sol_member_init();
}

/**
 * sol_group_exit() - let go of all tasks, free all groups
 *
 * The last part to go: nothing colours any more, no directory exists, no frame
 * will be counted down again.
 */
void sol_group_exit(void)
{
	u32 id;

	sol_member_exit();
	WRITE_ONCE(leaving, true);	/* nothing is queued from now on, ... */
	cancel_work_sync(&sol_emptied_work);
	cancel_work_sync(&sol_reap_work);
	cancel_delayed_work_sync(&linger_work);
	cancel_work_sync(&drain_work);
	/* ... but that one was, by a drain that had looked before. */
	cancel_delayed_work_sync(&linger_work);
	reap_fn(NULL);
	for (id = 1; id <= SOL_MAX_GROUPS; id++) {
		struct sol_group *group;

		group = rcu_dereference_protected(sol_groups[id], true);
		if (!group)
			continue;
		sol_quota_end(group);
		group_free(group);
	}
	kvfree(palette_mem);
}
