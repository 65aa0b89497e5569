/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Address map: physical address <-> (node, channel, rank, bank, row, column),
 * and the colours of a frame.
 *
 * A map is *ranges first, then XOR functions inside a range* (subtracting a
 * node base or a hole carries, so no single XOR map covers a whole system):
 *
 *   range:   [start, end) -> node, base, layout
 *   offset:  address - start + base       the "normalised" address of the node
 *   layout:  functions of the offset's bits for channel, rank, bank, row and
 *            column; bit i of a field is the parity of (offset & mask[i])
 *   llc:     functions of the *physical address*; the bits above the page
 *            offset are the LLC colour (TintMalloc III.A: A12..A16)
 *
 * Servers have 3, 6 or 12 channels, which no XOR tells apart. A layout may
 * interleave its offsets over n *ways* first, a granule of G bytes each:
 *
 *   way:        (offset / G) % n            the high part of the channel
 *   normalised: (offset / G / n) * G + offset % G
 *
 * and all functions of the layout are over the normalised offset instead. The
 * ways are 0 to n - 1, or are named: behind the memory that three channels
 * have alike may be some that only two of them have, or one. Then n may be a
 * power of two.
 *
 * Frames whole in one way (G at least a page) have it for a colour. Under
 * smaller granules a frame touches several ways, which are no colours then; n
 * frames in a row share a normalised page, and with it their bank set.
 * Numbers leave room: NC counts ways up to the next power of two, and colours
 * and bank sets of ways that aren't there hold no frame.
 *
 * Colours of a frame (what is constant over its 4 KiB):
 *   bank colour bc = ((node*NC + channel)*NR + rank)*NB + bank, at the frame's
 *            first line (CAMC 3.1). How users and the papers name banks.
 *   bank set: all banks that the frame's lines touch. Frames of different bank
 *            sets share no bank. Ownership and isolation go by bank set. Per
 *            map, V is the span of what the page-offset bits contribute to
 *            (channel, rank, bank), over all layouts; a bank set is a coset
 *            of V. On the Opteron's map V is the channel bit: 128 bank
 *            colours, 64 bank sets of two banks.
 *   cell:    bank_set * n_llc + llc, index into the matrix of TintMalloc III.C.
 *            Not every cell can hold a frame (LLC bits may be bank bits too).
 *
 * Bank groups and sub-channels are bits of the bank and channel fields; `bg`
 * and `sub` say which, for timing models and printing.
 *
 * A struct sol_map holds no pointer: it may be copied, and compared by value.
 * All functions are pure; sol_map_parse() is the only door in.
 */
#ifndef SOLOIST_ADDRMAP_H
#define SOLOIST_ADDRMAP_H

#include "../types.h"

#define SOL_MAP_NAME		32
#define SOL_MAX_ADDR_BITS	52
#define SOL_MAX_RANGES		64
#define SOL_MAX_LAYOUTS		4
#define SOL_MAX_NODES		64	/* as many as a u64 has bits */
#define SOL_MAX_FIELD_BITS	16	/* channel, rank, bank: bits each */
#define SOL_MAX_ROW_BITS	32
#define SOL_MAX_COL_BITS	20
#define SOL_MAX_LLC_BITS	12	/* LLC colour bits */
#define SOL_MAX_BANK_BITS	16	/* channel + rank + bank + node bits */
#define SOL_MAX_CELLS		(1u << 20)

/* One field of a DRAM coordinate: bit i = parity(offset & mask[i]). */
struct sol_field {
	u8 n;
	u64 mask[SOL_MAX_FIELD_BITS];
};

#define SOL_MAX_WAYS	63
#define SOL_NO_TURN	0xff	/* the layout lacks this way */

/* XOR functions of one DIMM population, low bit of each field first. */
struct sol_layout {
	struct sol_field channel;
	struct sol_field rank;
	struct sol_field bank;
	u8 n_row;		/* rows or columns not given: not invertible */
	u8 n_col;
	u64 row[SOL_MAX_ROW_BITS];
	u64 col[SOL_MAX_COL_BITS];
	u8 col_at[SOL_MAX_COL_BITS];	/* bit number of the printed column (10 may be skipped) */
	u8 row_at[SOL_MAX_ROW_BITS];	/* bit number of the printed row */
	u16 chip_select;		/* printed rank = rank + chip_select */
	u16 bg;				/* which bits of bank are the bank group */
	u16 sub;			/* which bits of channel are the sub-channel */
	u8 ways;			/* interleaved over so many; 0: no */
	u8 granule;			/* log2 of bytes in a row of one way */
	u8 way_of[SOL_MAX_WAYS];	/* of the granules of a round, in turn */
	u8 turn_of[SOL_MAX_WAYS + 1];	/* the inverse, or SOL_NO_TURN */
};

struct sol_range {
	u64 start;		/* first byte, page aligned */
	u64 end;		/* first byte after, page aligned */
	u64 base;		/* offset of the first byte within its node */
	u8 node;
	u8 layout;
};

/*
 * A linear function of a frame number, tabulated four bits at a time: what
 * makes sol_map_cell() cheap. Only the nibbles that matter are kept.
 */
#define SOL_TABLE_PARTS		10	/* 40 bits of frame number */
struct sol_table {
	u8 shift;		/* first bit of the frame number that matters */
	u8 n;			/* parts in use */
	u16 part[SOL_TABLE_PARTS][16];
};

/*
 * Which cells of a layout exist: bits that make both bank set and LLC colour
 * tie them together. Cell (s, l) exists in memory that is large enough if and
 * only if, for every tie, parity(s & set) == parity(l & llc).
 */
struct sol_ties {
	u8 n;
	u8 order;		/* enough: an aligned block of 2^order frames */
	u16 set[SOL_MAX_BANK_BITS + SOL_MAX_LLC_BITS];
	u16 llc[SOL_MAX_BANK_BITS + SOL_MAX_LLC_BITS];
};

struct sol_map {
	char name[SOL_MAP_NAME];
	u32 line;		/* cache line, bytes */
	u32 n_ranges;
	u32 n_layouts;
	u32 n_nodes;		/* highest node + 1 */
	u32 n_channels;		/* NC, per node */
	u32 n_ranks;		/* NR, per channel */
	u32 n_banks;		/* NB, per rank */
	u32 n_colors;		/* n_nodes*NC*NR*NB: bank colours */
	u32 n_bank_sets;	/* n_nodes << set_bits */
	u32 n_llc;		/* LLC colours, at least 1 */
	u32 n_cells;		/* n_bank_sets * n_llc */
	u8 bank_bits;		/* bits of (channel, rank, bank) together */
	u8 set_bits;		/* bank-set bits within a node */
	u8 n_llc_bits;
	u8 way_bits;		/* top bits of the channel, where ways are */
	u64 llc[SOL_MAX_LLC_BITS];	/* masks over the physical address */
	struct sol_range range[SOL_MAX_RANGES];	/* ascending, disjoint */
	struct sol_layout layout[SOL_MAX_LAYOUTS];
	/* Derived by sol_map_parse(): */
	u64 set_mask[SOL_MAX_LAYOUTS][SOL_MAX_BANK_BITS]; /* bank-set bits, over the offset */
	u32 span[SOL_MAX_BANK_BITS];	/* basis of V, reduced, ascending */
	u32 n_span;
	struct sol_table set_of[SOL_MAX_LAYOUTS];	/* offset -> bank set */
	struct sol_table color_of[SOL_MAX_LAYOUTS];	/* offset -> bc */
	struct sol_table llc_of;			/* address -> LLC */
	struct sol_ties ties[SOL_MAX_LAYOUTS];
	u64 large;		/* bit i: range i has such a block */
	u64 per_ways[SOL_MAX_LAYOUTS];	/* 2^64 / ways, rounded up */
	u8 set_way_at;		/* first bit of the way in a bank set */
	u8 set_channel_at;	/* first bit of the channels of a bank set */
	/* Bits of a bank set: channels, ranks, bank groups, banks. */
	u8 spread[SOL_MAX_BANK_BITS];
	bool ways_joined;	/* some frame touches several: they are no colour */
};

/* Colours of one frame. */
struct sol_frame_color {
	u32 node;
	u32 color;		/* bank colour bc of the frame's first line */
	u32 bank_set;
	u32 llc;
	u32 cell;		/* bank_set * n_llc + llc */
};

/*
 * Parse the map text (docs/reference/map-format.md). @len bytes, not NUL terminated.
 * Returns 0, or -EINVAL with @err filled and *@map all zero (every address is
 * then a hole): parse into a spare one, never into one in use. @map is large
 * (about 10 KiB): never on a kernel stack.
 */
int sol_map_parse(struct sol_map *map, const char *text, size_t len,
		  struct sol_err *err);

/* Write @map as canonical text. Returns the length it needs, as snprintf. */
size_t sol_map_print(const struct sol_map *map, char *buf, size_t size);

/* The range that holds address @addr, or NULL: a hole. */
const struct sol_range *sol_map_range(const struct sol_map *map, u64 addr);

/* Colours of the frame @pfn (address >> 12). -ERANGE: a hole. Fast path. */
int sol_map_color(const struct sol_map *map, u64 pfn,
		  struct sol_frame_color *color);

/* Cell of frame @pfn, or SOL_NO_CELL. The fast path's fast path. */
#define SOL_NO_CELL	(~(u32)0)
u32 sol_map_cell(const struct sol_map *map, u64 pfn);

/*
 * The first frame from @pfn on and below @end that lies in @cell, or @end.
 * Skips the ways of others, and looks at every frame else.
 */
u64 sol_map_next(const struct sol_map *map, u32 cell, u64 pfn, u64 end);

/* Node of bank set or bank colour. */
static inline u32 sol_map_set_node(const struct sol_map *map, u32 bank_set)
{
	return bank_set >> map->set_bits;
}

/* Bank set that bank colour @bc belongs to; bc < n_colors. */
u32 sol_map_color_set(const struct sol_map *map, u32 bc);

/* Bank colours of @bank_set, ascending, into @bc[max]; returns how many. */
u32 sol_map_set_colors(const struct sol_map *map, u32 bank_set, u32 *bc,
		       u32 max);

/*
 * Frames of the machine that lie in this cell: exact, by linear algebra over
 * aligned blocks. 0: this (bank, LLC) pair can never hold a page.
 */
u64 sol_map_cell_frames(const struct sol_map *map, u32 bank_set, u32 llc);

/* Is that more than 0? Much cheaper. */
bool sol_map_cell_exists(const struct sol_map *map, u32 bank_set, u32 llc);

/* The same over all LLC colours: the frames of @bank_set. */
u64 sol_map_set_frames(const struct sol_map *map, u32 bank_set);
bool sol_map_set_exists(const struct sol_map *map, u32 bank_set);

/*
 * Largest order (0..9) such that every aligned block of 2^order frames that
 * touches a set in @sets, a bitmap of n_bank_sets bits, lies wholly in @sets.
 * 9: the colours allow huge pages. If two ranges meet within a block, the answer is the
 * smaller, safe one.
 */
u32 sol_map_block_order(const struct sol_map *map, const unsigned long *sets);

#endif /* SOLOIST_ADDRMAP_H */
