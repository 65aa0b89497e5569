/* SPDX-License-Identifier: GPL-2.0 */
/* The address map in use, and the palette: who owns which colours of it. */
#ifndef SOLOIST_MAP_H
#define SOLOIST_MAP_H

#include "../../core/colors/palette.h"

/**
 * sol_map_in_use() - the address map
 *
 * Call it under sol_group_mutex, or for a group that exists: then the map stays.
 *
 * Return: the map; NULL: none was set yet.
 */
const struct sol_map *sol_map_in_use(void);

int sol_map_use(const char *text, size_t len);
void sol_map_exit(void);

/* Owners of the map's colours; sol_group_mutex. */
extern struct sol_palette sol_palette;

/* ---- Colour sets, each a bitmap of bank sets and one of LLC colours ---- */

struct sol_colors *sol_colors_new(const struct sol_map *map);
void sol_colors_copy(const struct sol_map *map, struct sol_colors *to,
		     const struct sol_colors *from);
void sol_colors_free(struct sol_colors *colors);

/* Bytes of both bitmaps of a colour set of @map. */
size_t sol_colors_bits_size(const struct sol_map *map);

/* Let @colors have its bitmaps at @bits, for the map in use. */
void sol_colors_attach(struct sol_colors *colors, unsigned long *bits);

/* Does @colors restrict anything? A group that does not owns no colour. */
static inline bool sol_colors_restrict(const struct sol_colors *colors)
{
	return colors->by_bank || colors->by_llc;
}

#endif /* SOLOIST_MAP_H */
