/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Functions of an address map (structs.h): they give the place and the colours of a
 * frame, and how many frames a colour has.
 *
 * All functions are pure; sol_map_parse() is the only door in.
 */
#ifndef SOLOIST_ADDRMAP_H
#define SOLOIST_ADDRMAP_H

#include "structs.h"

/**
 * struct sol_frame_color - colours of one frame
 * @node: 0 to n_nodes - 1
 * @color: bank colour of the frame's first line, 0 to n_colors - 1
 * @bank_set: 0 to n_bank_sets - 1
 * @llc: LLC colour, 0 to n_llc - 1
 * @cell: @bank_set * n_llc + @llc
 */
struct sol_frame_color {
	u32 node;
	u32 color;
	u32 bank_set;
	u32 llc;
	u32 cell;
};

/**
 * sol_map_parse() - read the map text (docs/reference/map-format.md)
 * @map: filled; about 10 KiB, so never on a kernel stack
 * @text: need not end with a NUL
 * @len: bytes of @text
 * @frame_shift: log2 of the bytes of a frame, SOL_MIN_FRAME_SHIFT to
 *	SOL_MAX_FRAME_SHIFT; in the kernel PAGE_SHIFT
 * @err: the line and what is wrong with it, filled on failure
 *
 * Parse into a spare map, never into one in use: after a failure @map is all
 * zero, and every address is a hole.
 *
 * Return: 0, or -EINVAL.
 */
int sol_map_parse(struct sol_map *map, const char *text, size_t len,
		  u32 frame_shift, struct sol_err *err);

/**
 * sol_map_print() - write a map as canonical text
 * @map: a map from sol_map_parse()
 * @buf: gets as much of the text as it has room for, and a NUL; may be NULL if
 *	@size is 0
 * @size: bytes of @buf
 * Return: bytes of the whole text without the NUL, as snprintf() has it.
 */
size_t sol_map_print(const struct sol_map *map, char *buf, size_t size);

/**
 * sol_map_range() - the range that holds an address
 * @map: a map from sol_map_parse()
 * @addr: physical address, bytes
 * Return: a range of @map, or NULL for a hole.
 */
const struct sol_range *sol_map_range(const struct sol_map *map, u64 addr);

/**
 * sol_map_color() - the colours of a frame
 * @map: a map from sol_map_parse()
 * @pfn: frame number, address >> sol_frame_shift()
 * @color: filled on success
 * Return: 0, or -ERANGE for a hole.
 */
int sol_map_color(const struct sol_map *map, u64 pfn,
		  struct sol_frame_color *color);

#define SOL_NO_CELL	(~(u32)0)

/**
 * sol_map_cell() - the cell of a frame, by tables alone
 * @map: a map from sol_map_parse()
 * @pfn: frame number, address >> sol_frame_shift()
 * Return: 0 to n_cells - 1, or SOL_NO_CELL for a hole.
 */
u32 sol_map_cell(const struct sol_map *map, u64 pfn);

/**
 * sol_map_next() - the next frame of a cell
 * @map: a map from sol_map_parse()
 * @cell: 0 to n_cells - 1
 * @pfn: first frame that is looked at
 * @end: first frame that is not
 *
 * Looks at every frame, except that it skips the ways of others. A hole ends
 * the search, so call it within one range.
 *
 * Return: the first frame of @cell from @pfn on and below @end, or @end.
 */
u64 sol_map_next(const struct sol_map *map, u32 cell, u64 pfn, u64 end);

/**
 * sol_map_set_node() - the node of a bank set
 * @map: a map from sol_map_parse()
 * @bank_set: 0 to n_bank_sets - 1
 * Return: 0 to n_nodes - 1.
 */
static inline u32 sol_map_set_node(const struct sol_map *map, u32 bank_set)
{
	return bank_set >> map->set_bits;
}

/**
 * sol_map_node_cells() - the cells of a node, which are successive
 * @map: a map from sol_map_parse()
 * @node: any number
 * @first: becomes the first of them
 * Return: how many there are; 0: the map has no such node.
 */
static inline u32 sol_map_node_cells(const struct sol_map *map, u32 node,
				     u32 *first)
{
	u32 n = map->n_llc << map->set_bits;

	*first = node * n;
	return node < map->n_nodes ? n : 0;
}

/**
 * sol_map_color_set() - the bank set that a bank colour belongs to
 * @map: a map from sol_map_parse()
 * @bc: bank colour, 0 to n_colors - 1
 * Return: 0 to n_bank_sets - 1.
 */
u32 sol_map_color_set(const struct sol_map *map, u32 bc);

/**
 * sol_map_set_colors() - the bank colours of a bank set
 * @map: a map from sol_map_parse()
 * @bank_set: 0 to n_bank_sets - 1
 * @bc: filled, ascending
 * @max: elements of @bc
 * Return: how many there are; @bc has the first @max of them.
 */
u32 sol_map_set_colors(const struct sol_map *map, u32 bank_set, u32 *bc,
		       u32 max);

/**
 * sol_map_cell_frames() - how many frames of the machine lie in a cell
 * @map: a map from sol_map_parse()
 * @bank_set: 0 to n_bank_sets - 1
 * @llc: LLC colour, 0 to n_llc - 1
 *
 * The count is exact, by linear algebra over aligned blocks.
 *
 * Return: frames. 0: this pair can never hold a page.
 */
u64 sol_map_cell_frames(const struct sol_map *map, u32 bank_set, u32 llc);

/**
 * sol_map_cell_exists() - whether any frame lies in a cell
 * @map: a map from sol_map_parse()
 * @bank_set: 0 to n_bank_sets - 1
 * @llc: LLC colour, 0 to n_llc - 1
 *
 * Much cheaper than sol_map_cell_frames().
 *
 * Return: whether that is more than 0.
 */
bool sol_map_cell_exists(const struct sol_map *map, u32 bank_set, u32 llc);

/**
 * sol_map_set_frames() - how many frames of the machine lie in a bank set
 * @map: a map from sol_map_parse()
 * @bank_set: 0 to n_bank_sets - 1
 * Return: frames, over all LLC colours.
 */
u64 sol_map_set_frames(const struct sol_map *map, u32 bank_set);

/**
 * sol_map_set_exists() - whether any frame lies in a bank set
 * @map: a map from sol_map_parse()
 * @bank_set: 0 to n_bank_sets - 1
 * Return: whether sol_map_set_frames() is more than 0.
 */
bool sol_map_set_exists(const struct sol_map *map, u32 bank_set);

/**
 * sol_map_block_order() - the largest block that bank sets hold whole
 * @map: a map from sol_map_parse()
 * @sets: bitmap of n_bank_sets bits
 *
 * If two ranges meet within a block, the answer is the smaller, safe one.
 *
 * Return: the largest order, 0 to sol_huge_order(), such that every aligned
 * block of 2^order frames that touches a bank set of @sets lies wholly in
 * @sets. sol_huge_order(): huge pages are possible.
 */
u32 sol_map_block_order(const struct sol_map *map, const unsigned long *sets);

#endif /* SOLOIST_ADDRMAP_H */
