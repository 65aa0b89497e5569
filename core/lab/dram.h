/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Whole DRAM addresses, down to row and column. Colouring asks for a frame's
 * bank only (map/addrmap.h); this is for who models or shows the memory.
 */
#ifndef SOLOIST_DRAM_H
#define SOLOIST_DRAM_H

#include "../map/addrmap.h"

/**
 * struct sol_dram - a decoded physical address; all numbers are from 0
 * @node: the node
 * @channel: of the node
 * @rank: of the channel
 * @chip_select: the rank as the machine numbers it, which is printed
 * @bank: of the rank
 * @row: of the bank
 * @column: of the burst, as the papers' report prints it
 * @color: bank colour bc of this very address
 */
struct sol_dram {
	u32 node;
	u32 channel;
	u32 rank;
	u32 chip_select;
	u32 bank;
	u32 row;
	u32 column;
	u32 color;
};

/**
 * sol_map_decode() - a physical address in DRAM
 * @map: the machine's
 * @addr: a byte address
 * @dram: takes the place
 *
 * Return: 0; -ERANGE: no range holds it (a hole).
 */
int sol_map_decode(const struct sol_map *map, u64 addr, struct sol_dram *dram);

/**
 * sol_map_encode() - the physical address of a place in DRAM, the inverse of decode
 * @map: the machine's
 * @dram: node, channel, rank, bank, row and column are read
 * @addr: takes the byte address; bits that no function determines, those within a line,
 *	are 0
 *
 * Return: 0; -ERANGE: no such place; -EDOM: the map's functions don't determine a line
 * (no rows or no columns were given).
 */
int sol_map_encode(const struct sol_map *map, const struct sol_dram *dram,
		   u64 *addr);

#endif /* SOLOIST_DRAM_H */
