/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * An address map: physical address <-> (node, channel, rank, bank, row, column),
 * and the colours of a frame.
 *
 * A map is *ranges first, then XOR functions inside a range* (subtracting a
 * node base or a hole carries, so no single XOR map covers a whole system):
 *
 *   range:   [start, end) -> node, base, layout
 *   offset:  address - start + base       the "normalised" address of the node
 *   layout:  functions of the offset's bits for channel, rank, bank, row and
 *            column; bit i of a field is the parity of (offset & mask[i])
 *   llc:     functions of the *physical address*; those of bits above the page
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
 * A frame is a page of the kernel: 4, 16 or 64 KiB. The text is the same for
 * all of them; larger frames have fewer colours.
 *
 * Colours of a frame (what is constant over its bytes):
 *   bank colour bc = ((node*NC + channel)*NR + rank)*NB + bank, at the frame's
 *            first line (CAMC 3.1). How users and the papers name banks.
 *   bank set: all banks that the frame's lines touch. Frames of different bank
 *            sets share no bank. Ownership and isolation go by bank set. Per
 *            map, V is the span of what the page-offset bits contribute to
 *            (channel, rank, bank), over all layouts; a bank set is a coset
 *            of V. On the Opteron's map V is the channel bit: 128 bank
 *            colours, 64 bank sets of two banks.
 *   LLC colour: the combinations of the llc functions in which no page-offset
 *            bit is left. With 16 KiB 5 functions A12..A16 leave A14..A16.
 *   cell:    bank_set * n_llc + llc, index into the matrix of TintMalloc III.C.
 *            Not every cell can hold a frame (LLC bits may be bank bits too).
 *
 * Bank groups and sub-channels are bits of the bank and channel fields; `bg`
 * and `sub` say which, for timing models and printing.
 *
 * A struct sol_map holds no pointer: it may be copied, and compared by value.
 * addrmap.h has its functions.
 */
#ifndef SOLOIST_STRUCTS_H
#define SOLOIST_STRUCTS_H

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
#define SOL_MIN_FRAME_SHIFT	12	/* 4 KiB */
#define SOL_MAX_FRAME_SHIFT	16	/* 64 KiB */

/**
 * struct sol_field - one field of a DRAM coordinate
 * @n: bits of the field, 0 to SOL_MAX_FIELD_BITS
 * @mask: bit i of the field is parity(offset & mask[i])
 */
struct sol_field {
	u8 n;
	u64 mask[SOL_MAX_FIELD_BITS];
};

#define SOL_MAX_WAYS	63
#define SOL_NO_TURN	0xff	/* the layout lacks this way */

/**
 * struct sol_layout - XOR functions of one DIMM population
 * @channel: channel within the node, without the ways
 * @rank: rank within the channel
 * @bank: bank within the rank
 * @n_row: bits of a row, 0 to SOL_MAX_ROW_BITS; 0: not given, and no address
 *	can be computed from a coordinate
 * @n_col: bits of a column, 0 to SOL_MAX_COL_BITS; 0 as for @n_row
 * @row: masks over the offset, low bit of the row first
 * @col: masks over the offset, low bit of the column first
 * @col_at: bit number of the printed column of each bit (10 may be skipped)
 * @row_at: bit number of the printed row of each bit
 * @chip_select: printed rank = rank + @chip_select
 * @bg: bitmap: which bits of the bank field are the bank group
 * @sub: bitmap: which bits of the channel field are the sub-channel
 * @ways: the layout interleaves its offsets over so many ways, 1 to
 *	SOL_MAX_WAYS; 0: it does not interleave
 * @granule: log2 of the bytes of a granule
 * @way_of: the way of each granule of a round, @ways of them
 * @turn_of: the inverse of @way_of, or SOL_NO_TURN
 *
 * Each list of masks begins with the low bit of its field.
 */
struct sol_layout {
	struct sol_field channel;
	struct sol_field rank;
	struct sol_field bank;
	u8 n_row;
	u8 n_col;
	u64 row[SOL_MAX_ROW_BITS];
	u64 col[SOL_MAX_COL_BITS];
	u8 col_at[SOL_MAX_COL_BITS];
	u8 row_at[SOL_MAX_ROW_BITS];
	u16 chip_select;
	u16 bg;
	u16 sub;
	u8 ways;
	u8 granule;
	u8 way_of[SOL_MAX_WAYS];
	u8 turn_of[SOL_MAX_WAYS + 1];
};

/**
 * struct sol_range - physical addresses of one node and one layout
 * @start: first byte, a multiple of a frame
 * @end: first byte after the range, a multiple of a frame, above @start
 * @base: offset of the first byte within its node, a multiple of a frame
 * @node: 0 to SOL_MAX_NODES - 1
 * @layout: index into the map's layouts
 */
struct sol_range {
	u64 start;
	u64 end;
	u64 base;
	u8 node;
	u8 layout;
};

#define SOL_TABLE_PARTS		10	/* 40 bits of frame number, the most */

/**
 * struct sol_table - a linear function of a frame number, tabulated
 * @shift: first bit of the frame number that matters
 * @n: parts in use, 0 to SOL_TABLE_PARTS
 * @part: part i has the function's value for each value of the four bits from
 *	@shift + 4 * i on; the function is the XOR over all parts
 *
 * This makes sol_map_cell() cheap. Only the nibbles that matter are kept.
 */
struct sol_table {
	u8 shift;
	u8 n;
	u16 part[SOL_TABLE_PARTS][16];
};

/**
 * struct sol_ties - which cells of a layout exist
 * @n: ties, 0 to the length of @set
 * @order: an aligned block of 2^@order frames has every cell that exists
 * @set: by tie, a mask over the bank set
 * @llc: by tie, a mask over the LLC colour
 *
 * Address bits that make both bank set and LLC colour tie them together. Cell
 * (s, l) exists in memory that is large enough if and only if, for every tie i,
 * parity(s & set[i]) == parity(l & llc[i]).
 */
struct sol_ties {
	u8 n;
	u8 order;
	u16 set[SOL_MAX_BANK_BITS + SOL_MAX_LLC_BITS];
	u16 llc[SOL_MAX_BANK_BITS + SOL_MAX_LLC_BITS];
};

/**
 * struct sol_map - an address map
 * @name: NUL terminated
 * @line: bytes of a cache line
 * @n_ranges: 1 to SOL_MAX_RANGES; 0: every address is a hole
 * @n_layouts: 1 to SOL_MAX_LAYOUTS
 * @n_nodes: highest node + 1
 * @n_channels: NC, of a node, with the ways up to the next power of two
 * @n_ranks: NR, of a channel
 * @n_banks: NB, of a rank
 * @n_colors: bank colours, n_nodes * NC * NR * NB
 * @n_bank_sets: @n_nodes << @set_bits
 * @n_llc: LLC colours, at least 1
 * @n_cells: @n_bank_sets * @n_llc, at most SOL_MAX_CELLS
 * @bank_bits: bits of channel, rank and bank together
 * @set_bits: bits of a bank set within its node
 * @n_llc_bits: derived; bits of an LLC colour
 * @way_bits: top bits of the channel, which hold the way
 * @frame_shift: log2 of the bytes of a frame; ask sol_frame_shift()
 * @n_llc_functions: 0 to SOL_MAX_LLC_BITS
 * @llc: masks over the physical address, as the text gives them
 * @range: ascending, disjoint
 * @layout: functions; ranges refer to them by index
 * @llc_color: derived; masks over the physical address, @n_llc_bits of them, low
 *	bit of the LLC colour first
 * @set_mask: derived; by layout, a mask over the offset for each bit of a set
 * @span: derived; basis of V, reduced, ascending
 * @n_span: derived; vectors of @span
 * @set_of: derived; by layout, from offset to bank set
 * @color_of: derived; by layout, from offset to bank colour
 * @llc_of: derived; from address to LLC colour
 * @ties: derived; by layout
 * @large: derived; bit i: range i has an aligned block of the order of its
 *	layout's ties
 * @per_ways: derived; by layout, 2^64 / ways, rounded up
 * @set_way_at: derived; first bit of the way in a bank set
 * @set_channel_at: derived; first bit of the channels in a bank set
 * @spread: derived; bits of a bank set in the order in which an owner's bank
 *	sets are spread: channels, ranks, bank groups, banks
 * @ways_joined: derived; some frame touches several ways: they are no colour
 *
 * Derived members are made by sol_map_parse().
 */
struct sol_map {
	char name[SOL_MAP_NAME];
	u32 line;
	u32 n_ranges;
	u32 n_layouts;
	u32 n_nodes;
	u32 n_channels;
	u32 n_ranks;
	u32 n_banks;
	u32 n_colors;
	u32 n_bank_sets;
	u32 n_llc;
	u32 n_cells;
	u8 bank_bits;
	u8 set_bits;
	u8 n_llc_bits;
	u8 way_bits;
	u8 frame_shift;
	u8 n_llc_functions;
	u64 llc[SOL_MAX_LLC_BITS];
	struct sol_range range[SOL_MAX_RANGES];
	struct sol_layout layout[SOL_MAX_LAYOUTS];
	/* Derived: */
	u64 llc_color[SOL_MAX_LLC_BITS];
	u64 set_mask[SOL_MAX_LAYOUTS][SOL_MAX_BANK_BITS];
	u32 span[SOL_MAX_BANK_BITS];
	u32 n_span;
	struct sol_table set_of[SOL_MAX_LAYOUTS];
	struct sol_table color_of[SOL_MAX_LAYOUTS];
	struct sol_table llc_of;
	struct sol_ties ties[SOL_MAX_LAYOUTS];
	u64 large;
	u64 per_ways[SOL_MAX_LAYOUTS];
	u8 set_way_at;
	u8 set_channel_at;
	u8 spread[SOL_MAX_BANK_BITS];
	bool ways_joined;
};

/**
 * sol_frame_shift() - the size of a frame
 * @map: a map from sol_map_parse()
 *
 * In the kernel a frame is a page, whose size the compiler knows.
 *
 * Return: log2 of its bytes.
 */
static inline u32 sol_frame_shift(const struct sol_map *map)
{
#ifdef __KERNEL__
	return PAGE_SHIFT;
#else
	return map->frame_shift;
#endif
}

/**
 * sol_huge_order() - the size of a huge page
 * @map: a map from sol_map_parse()
 *
 * One page of a page table maps a huge page; its entries have 8 bytes.
 *
 * Return: log2 of its frames: 9 of 4 KiB, 11 of 16 KiB.
 */
static inline u32 sol_huge_order(const struct sol_map *map)
{
	return sol_frame_shift(map) - 3;
}

#endif /* SOLOIST_STRUCTS_H */
