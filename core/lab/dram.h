/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Whole DRAM addresses, down to row and column. Colouring asks for a frame's
 * bank only (map/addrmap.h); this is for who models or shows the memory.
 */
#ifndef SOLOIST_DRAM_H
#define SOLOIST_DRAM_H

#include "../map/addrmap.h"

/* A decoded physical address. */
struct sol_dram {
	u32 node;
	u32 channel;
	u32 rank;		/* 0-based; print rank + chip_select */
	u32 chip_select;	/* as the machine numbers it */
	u32 bank;
	u32 row;
	u32 column;		/* of the burst, as the papers' report prints it */
	u32 color;		/* bank colour bc of this very address */
};

/* Physical address to DRAM. -ERANGE: no range holds it (a hole). */
int sol_map_decode(const struct sol_map *map, u64 addr, struct sol_dram *dram);

/*
 * DRAM to physical address, the inverse of decode; bits that no function
 * determines (bytes within a line) are 0. Reads node, channel, rank, bank,
 * row, column. -ERANGE: no such place; -EDOM: the map's functions don't
 * determine a line (no rows or no columns were given).
 */
int sol_map_encode(const struct sol_map *map, const struct sol_dram *dram,
		   u64 *addr);

#endif /* SOLOIST_DRAM_H */
