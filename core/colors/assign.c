// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Automatic assignment (CAMC 3.4): which colours should a new owner get?
 *
 * Only free bank sets are given: no owner, no page left in use. Nodes are
 * taken in order of preference: near the task's cores; then without owners of
 * the other kind, so that real-time and other tasks meet on no controller
 * where there are enough; then the least used. A task gets all its bank sets
 * on one node if a preferred node has that many. A node whose channels are
 * colours has a controller for each: on one that has both kinds of owners,
 * channels without the other kind come first.
 *
 * The papers don't say which banks of a node. An owner's sets are spread over
 * its channels, then over ranks, then over bank groups, and of each the least
 * used come first: an owner on one channel has that channel's bandwidth only,
 * and owners that all begin with the same one leave the others idle. A
 * real-time owner is spread over ranks and bank groups of as few channels as
 * will do, since others avoid each channel that it is on.
 *
 * With LLC colours the choice is a rectangle, bank sets times LLC colours, and
 * every cell of it must exist. Address bits that make both bank and LLC colour
 * tie them together: on the Opteron bank bits 0 and 1 are LLC bits 3 and 4, so
 * a bank set goes with 8 of 32 LLC colours. Bank sets that go with the same
 * LLC colours are a class; the class with most free LLC colours is taken, so
 * that owners spread over the classes.
 *
 * Locking: the caller's; reads the palette only.
 */
#include "palette.h"
#include "../text/text.h"

#define MAX_CHANNEL_BITS	6	/* in a bitmap of 64 */

/*
 * Small: all of them lie on the stack of a fault that grows a group. There are 2^16 bank
 * sets at most.
 */
struct node_use {
	u64 used : 17;		/* bank sets that are not free */
	u64 free : 17;
	u64 node : 6;
	u64 tier : 1;		/* 0: near; 1: allowed, but not near */
	u64 mixed : 1;		/* has owners of the other kind */
};

struct choice {
	const struct sol_palette *p;
	const struct sol_want *want;
	struct node_use node[SOL_MAX_NODES];	/* best first */
	u32 n_nodes;
	u64 avoid;		/* channels of the node, a bitmap */
};

static bool set_free(const struct sol_palette *p, u32 set)
{
	if (p->set[set].owners)
		return false;
	return !p->in_use || !p->in_use(p->ctx, set);
}

/* Has the set owners of the other kind? */
static bool is_mixed(const struct sol_want *want, const struct sol_use *use)
{
	return want->realtime ? use->owners > use->realtime : use->realtime;
}

/* Channel of a bank set within its node; 0 where there are too many. */
static u32 channel_of(const struct sol_map *map, u32 set)
{
	u32 bits = map->set_bits - map->set_channel_at;

	set &= (1u << map->set_bits) - 1;
	return bits > MAX_CHANNEL_BITS ? 0 : set >> map->set_channel_at;
}

static void look_at(const struct sol_palette *p, const struct sol_want *want,
		    struct node_use *n)
{
	u32 first = n->node << p->map->set_bits, i;

	n->tier = want->near && !(want->near >> n->node & 1);
	n->mixed = false;
	n->used = n->free = 0;
	for (i = first; i < first + (1u << p->map->set_bits); i++) {
		const struct sol_use *use = &p->set[i];

		if (is_mixed(want, use))
			n->mixed = true;
		if (!sol_map_set_exists(p->map, i))
			continue;
		if (set_free(p, i))
			n->free++;
		else
			n->used++;
	}
}

static bool better(const struct node_use *a, const struct node_use *b)
{
	if (a->tier != b->tier)
		return a->tier < b->tier;
	if (a->mixed != b->mixed)
		return b->mixed;
	return a->used < b->used;
}

/* The nodes that may be used, best first; the lowest number first if equal. */
static void sort_nodes(struct choice *c)
{
	const struct sol_want *want = c->want;
	u32 node, at;

	for (node = 0; node < c->p->map->n_nodes; node++) {
		struct node_use n = { .node = node };

		if (!(want->allowed >> node & 1))
			continue;
		if (want->strict && want->near && !(want->near >> node & 1))
			continue;
		look_at(c->p, want, &n);
		for (at = c->n_nodes; at && better(&n, &c->node[at - 1]); at--)
			c->node[at] = c->node[at - 1];
		c->node[at] = n;
		c->n_nodes++;
	}
}

/* ---- Rectangles of bank sets and LLC colours ---- */

/*
 * A class is named by one of its bank sets, the seed: its LLC colours are the
 * first want->n_llc free ones that go with the seed.
 */
static bool goes_with(const struct choice *c, u32 seed, u32 llc)
{
	return !c->p->llc[llc].owners &&
	       sol_map_cell_exists(c->p->map, seed, llc);
}

/* Can a page be of @set and of an LLC colour that the owner has? */
static bool suits(const struct choice *c, u32 set)
{
	u32 llc;

	if (!c->want->llc)
		return true;
	for (llc = 0; llc < c->p->map->n_llc; llc++)
		if (sol_bit(c->want->llc, llc) && sol_map_cell_exists(c->p->map, set, llc))
			return true;
	return false;
}

/* Is @set free, and does it go with all LLC colours of the class? */
static bool usable(const struct choice *c, u32 seed, u32 set)
{
	u32 left = c->want->n_llc, llc;

	if (c->avoid >> channel_of(c->p->map, set) & 1 ||
	    !sol_map_set_exists(c->p->map, set) || !set_free(c->p, set) || !suits(c, set))
		return false;
	for (llc = 0; left && llc < c->p->map->n_llc; llc++) {
		if (!goes_with(c, seed, llc))
			continue;
		if (!sol_map_cell_exists(c->p->map, set, llc))
			return false;
		left--;
	}
	return true;
}

/* ---- Spreading over channels, ranks and bank groups ---- */

/* Bank sets of a node that agree in some bits: those not in @rest. */
struct part {
	u32 first;		/* the set whose other bits are all 0 */
	u32 rest;		/* bits in which the part's sets differ */
	u32 usable;
	u32 exist;
	u32 used;		/* not free */
	u32 realtime;		/* with a real-time owner */
	u32 quota;		/* sets that the owner takes of it */
};

/* The next set of a part after @set; the first one again after the last. */
static u32 next_in(const struct part *part, u32 set)
{
	return part->first | (((set & part->rest) - part->rest) & part->rest);
}

static void look_into(const struct choice *c, u32 seed, struct part *part)
{
	u32 set = part->first;

	part->usable = part->exist = part->used = 0;
	part->realtime = part->quota = 0;
	do {
		if (!sol_map_set_exists(c->p->map, set))
			continue;
		part->exist++;
		part->used += !set_free(c->p, set);
		part->realtime += c->p->set[set].realtime > 0;
		part->usable += usable(c, seed, set);
	} while ((set = next_in(part, set)) != part->first);
}

/* Is @a less than @b, in relation to how many sets each has? */
static bool less(u32 a, const struct part *pa, u32 b, const struct part *pb)
{
	return (u64)a * pb->exist < (u64)b * pa->exist;
}

/* Which half gets the next set: where the owner, then anybody, has least. */
static u32 pick(const struct part *half)
{
	u32 i;

	for (i = 0; i < 2; i++)
		if (half[i].quota == half[i].usable)
			return !i;
	if (less(half[1].quota, &half[1], half[0].quota, &half[0]))
		return 1;
	if (less(half[0].quota, &half[0], half[1].quota, &half[1]))
		return 0;
	return less(half[1].used, &half[1], half[0].used, &half[0]);
}

/* A real-time owner's channels: all in one half, by other real-time ones. */
static u32 pick_few(const struct part *half, u32 want)
{
	bool fits[2] = { half[0].usable >= want, half[1].usable >= want };

	if (fits[0] != fits[1])
		return fits[1];
	if (!half[0].realtime != !half[1].realtime)
		return !half[0].realtime;
	return less(half[1].used, &half[1], half[0].used, &half[0]);
}

static void share_out(const struct choice *c, u32 bit, u32 want,
		      struct part *half)
{
	u32 first;

	if (c->want->realtime && bit >= c->p->map->set_channel_at) {
		first = pick_few(half, want);
		half[first].quota = half[first].usable < want ?
				    half[first].usable : want;
		half[!first].quota = want - half[first].quota;
		return;
	}
	while (want--)
		half[pick(half)].quota++;
}

/*
 * Take @part->quota usable sets of a part, which has them. Level by level, the
 * bits that tell channels apart first, each half gets its share.
 */
static void spread(const struct choice *c, u32 seed, const struct part *part,
		   u32 level, unsigned long *sets)
{
	struct part half[2];
	u32 bit, i;

	if (!part->quota)
		return;
	if (!part->rest) {
		sol_bit_set(sets, part->first);
		return;
	}
	bit = c->p->map->spread[level];
	for (i = 0; i < 2; i++) {
		half[i].first = part->first | i << bit;
		half[i].rest = part->rest & ~(1u << bit);
		look_into(c, seed, &half[i]);
	}
	share_out(c, bit, part->quota, half);
	for (i = 0; i < 2; i++)
		spread(c, seed, &half[i], level + 1, sets);
}

/* How many sets of the class of @seed are usable on nodes [from, to). */
static u32 count_usable(const struct choice *c, u32 seed, u32 from, u32 to)
{
	u32 per_node = 1u << c->p->map->set_bits, n = 0, i, j;

	for (i = from; i < to; i++)
		for (j = 0; j < per_node && n < c->want->n_sets; j++)
			n += usable(c, seed, c->node[i].node * per_node + j);
	return n;
}

/* n_sets of one class on nodes [from, to) of the list, which have them. */
static void take(const struct choice *c, u32 seed, u32 from, u32 to,
		 unsigned long *sets)
{
	u32 per_node = 1u << c->p->map->set_bits, left = c->want->n_sets, i;

	for (i = from; left && i < to; i++) {
		struct part node = {
			.first = c->node[i].node * per_node,
			.rest = per_node - 1,
		};

		look_into(c, seed, &node);
		node.quota = node.usable < left ? node.usable : left;
		spread(c, seed, &node, 0, sets);
		left -= node.quota;
	}
}

/*
 * How many free LLC colours the class of @seed has. 0 if this search met it
 * before, which @tried remembers: none of its colours is new, and they are no
 * more than an earlier class had (@most). That is exact where classes do not
 * overlap, as within one layout, and finds one bank set wherever there is one.
 */
static u32 class_llc(const struct choice *c, u32 seed, u32 most,
		     unsigned long *tried)
{
	u32 n = 0, llc;
	bool fresh = false;

	for (llc = 0; llc < c->p->map->n_llc; llc++) {
		if (!goes_with(c, seed, llc))
			continue;
		fresh |= !sol_bit(tried, llc);
		sol_bit_set(tried, llc);
		n++;
	}
	return fresh || n > most ? n : 0;
}

/* The best find of the search; @seed is SOL_NO_CELL as long as there is none. */
struct found {
	u32 seed;
	u32 from;		/* nodes of the list */
	u32 to;
	u32 llc;		/* free LLC colours of the seed's class */
	u32 most_llc;		/* in any class, for the refusal */
	u32 most_sets;
	u64 avoid;
};

/* The class with most free LLC colours that has n_sets on [from, to). */
static void search(const struct choice *c, u32 from, u32 to,
		   unsigned long *tried, struct found *f)
{
	const struct sol_map *map = c->p->map;
	u32 per_node = 1u << map->set_bits, most = 0, i, j, llc, n;

	memset(tried, 0, SOL_LONGS(map->n_llc) * sizeof(*tried));
	for (i = from; i < to; i++)
		for (j = 0; j < per_node; j++) {
			u32 seed = c->node[i].node * per_node + j;

			if (!sol_map_set_exists(map, seed) ||
			    !set_free(c->p, seed))
				continue;
			llc = c->want->n_llc ?
			      class_llc(c, seed, most, tried) : 0;
			if (llc > most)
				most = llc;
			if (llc < c->want->n_llc ||
			    (f->seed != SOL_NO_CELL && llc <= f->llc))
				continue;
			n = count_usable(c, seed, from, to);
			if (n > f->most_sets)
				f->most_sets = n;
			if (n < c->want->n_sets) {
				/* Without LLC colours all are of one class. */
				if (!c->want->n_llc)
					return;
				continue;
			}
			f->seed = seed;
			f->from = from;
			f->to = to;
			f->llc = llc;
			f->avoid = c->avoid;
		}
	if (most > f->most_llc)
		f->most_llc = most;
}

/* Channels of the node that owners of the other kind are on. */
static u64 mixed_channels(const struct choice *c, u32 node)
{
	u32 first = node << c->p->map->set_bits, i;
	u64 mixed = 0;

	for (i = first; i < first + (1u << c->p->map->set_bits); i++)
		if (is_mixed(c->want, &c->p->set[i]))
			mixed |= 1ull << channel_of(c->p->map, i);
	return mixed;
}

/* One node of the best tier that has it all, else the nodes together. */
static void search_nodes(struct choice *c, unsigned long *tried,
			 struct found *f)
{
	u32 i;

	for (i = 0; i < c->n_nodes && c->node[i].tier == c->node[0].tier; i++) {
		c->avoid = mixed_channels(c, c->node[i].node);
		if (c->avoid)
			search(c, i, i + 1, tried, f);
		c->avoid = 0;
		if (f->seed == SOL_NO_CELL)
			search(c, i, i + 1, tried, f);
		if (f->seed != SOL_NO_CELL)
			return;
	}
	search(c, 0, c->n_nodes, tried, f);
}

static void refuse(const struct choice *c, const struct found *f,
		   struct sol_err *err)
{
	struct sol_text text = { .buf = err->text, .size = sizeof(err->text) };
	u32 i, free = 0;

	err->line = 0;
	for (i = 0; i < c->n_nodes; i++)
		free += c->node[i].free;
	if (!c->n_nodes)
		sol_text_put(&text, "no memory node is allowed");
	else if (free < c->want->n_sets)
		sol_text_put(&text, "%u bank sets wanted, %u free",
			     c->want->n_sets, free);
	else if (f->most_llc < c->want->n_llc)
		sol_text_put(&text,
			     "%u LLC colours wanted, at most %u free ones go with one bank set",
			     c->want->n_llc, f->most_llc);
	else
		sol_text_put(&text,
			     "%u bank sets that go with the same %u LLC colours wanted, at most %u free",
			     c->want->n_sets, c->want->n_llc, f->most_sets);
	for (i = 0; i < c->n_nodes; i++)
		sol_text_put(&text, "%snode %u: %u", i ? ", " : "; bank sets free on ",
			     (u32)c->node[i].node, (u32)c->node[i].free);
}

int sol_palette_assign(const struct sol_palette *p, const struct sol_want *want,
		       struct sol_colors *out, struct sol_err *err)
{
	struct found f = { .seed = SOL_NO_CELL };
	struct choice c = { .p = p, .want = want };
	u32 left = want->n_llc, llc;

	if (!want->n_sets)
		return sol_refuse(err, 0, -EINVAL,
				  "at least one bank set must be wanted");
	sort_nodes(&c);
	search_nodes(&c, out->llc, &f);
	memset(out->llc, 0, SOL_LONGS(p->map->n_llc) * sizeof(*out->llc));
	if (f.seed == SOL_NO_CELL) {
		if (err)
			refuse(&c, &f, err);
		return -ENOSPC;
	}
	c.avoid = f.avoid;
	take(&c, f.seed, f.from, f.to, out->sets);
	for (llc = 0; left && llc < p->map->n_llc; llc++)
		if (goes_with(&c, f.seed, llc)) {
			sol_bit_set(out->llc, llc);
			left--;
		}
	out->by_bank = true;
	out->by_llc = want->n_llc;
	out->realtime = want->realtime;
	return 0;
}
