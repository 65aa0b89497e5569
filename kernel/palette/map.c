// SPDX-License-Identifier: GPL-2.0
/*
 * The address map in use, and the palette: who owns which colours of it.
 *
 * A new map is parsed into a spare one, so that a map that is refused leaves the
 * old one in use. While a group exists the map does not change.
 *
 * Locking: sol_group_mutex guards the map and the palette.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../command/command.h"
#include "../command/status.h"
#include "../frames/giveback.h"
#include "../frames/remap.h"
#include "../group/group.h"
#include "map.h"

static struct sol_map maps[2];	/* the one in use, and one to parse into */
static struct sol_map *map;	/* NULL: none yet */
static void *palette_mem;
struct sol_palette sol_palette;

/* ---- Colour sets ---- */

void sol_colors_attach(struct sol_colors *colors, unsigned long *bits)
{
	colors->sets = bits;
	colors->llc = bits + SOL_LONGS(map->n_bank_sets);
}

size_t sol_colors_bits_size(const struct sol_map *m)
{
	return (SOL_LONGS(m->n_bank_sets) + SOL_LONGS(m->n_llc)) *
	       sizeof(unsigned long);
}

/* An empty colour set, which restricts nothing. Return: the set; NULL: no memory. */
struct sol_colors *sol_colors_new(const struct sol_map *m)
{
	struct sol_colors *colors;

	colors = kvzalloc(sizeof(*colors) + sol_colors_bits_size(m), GFP_KERNEL);
	if (colors)
		sol_colors_attach(colors, (unsigned long *)(colors + 1));
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

/* ---- The map and the palette ---- */

const struct sol_map *sol_map_in_use(void)
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
	sol_palette_init(&sol_palette, map, palette_mem);
	sol_palette.in_use = sol_store_used_in;
	return 0;
}

/* Readers get the canonical text of a map. If it were cut, they would see another map. */
static int check_size(const struct sol_map *new)
{
	size_t size = sol_map_print(new, NULL, 0);

	if (size < SOL_FILE_SIZE)
		return 0;
	return sol_deny(-EFBIG,
			"map: %zu bytes with each range's node written, a file of configfs has %u; join ranges",
			size, SOL_FILE_SIZE - 1);
}

/**
 * sol_map_use() - use another address map
 * @text: of docs/reference/map-format.md
 * @len: its bytes
 *
 * Return: 0; -EINVAL if it is wrong or contradicts this machine; -EFBIG; -EBUSY while
 * a group exists or its frames are in use; -ENOMEM. Words if refused.
 */
int sol_map_use(const char *text, size_t len)
{
	struct sol_map *spare;
	struct sol_err err;
	void *mem = NULL;
	int ret;

	mutex_lock(&sol_group_mutex);
	spare = &maps[map == &maps[0]];
	ret = sol_map_parse(spare, text, len, PAGE_SHIFT, &err);
	if (ret)
		sol_deny(ret, "map: line %u: %s", err.line, err.text);
	else if (check_size(spare))
		ret = -EFBIG;
	else if (sol_group_counts.named || sol_group_counts.implicit || sol_group_counts.dead)
		ret = sol_deny(-EBUSY,
			       "map: %u groups, %u implicit ones and pages of %u removed ones are in use; remove them first",
			       sol_group_counts.named, sol_group_counts.implicit, sol_group_counts.dead);
	else
		ret = map_install(spare, &mem);
	mutex_unlock(&sol_group_mutex);
	kvfree(mem);
	return ret;
}

void sol_map_exit(void)
{
	kvfree(palette_mem);
}
