// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Palette: counts of owners per bank set and per LLC colour, and changing
 * them. Choosing colours for an owner stands in assign.c.
 *
 * CAMC keeps "a table [that] records the utilization of global memory colors";
 * this is that table, by bank set instead of printed colour, with exclusive
 * and real-time owners counted apart.
 *
 * Locking: the caller's, one for all of a palette.
 */
#include "palette.h"
#include "../text/text.h"

size_t sol_palette_bytes(const struct sol_map *map)
{
	return ((size_t)map->n_bank_sets + map->n_llc) * sizeof(struct sol_use);
}

void sol_palette_init(struct sol_palette *p, const struct sol_map *map,
		      void *mem)
{
	memset(mem, 0, sol_palette_bytes(map));
	p->map = map;
	p->set = mem;
	p->llc = p->set + map->n_bank_sets;
	p->in_use = NULL;
	p->ctx = NULL;
}

static bool any_bit(const unsigned long *bits, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (sol_bit(bits, i))
			return true;
	return false;
}

/* Does @colors name bank set, LLC colour @i? */
static bool names_set(const struct sol_colors *colors, u32 i)
{
	return colors && colors->by_bank && sol_bit(colors->sets, i);
}

static bool names_llc(const struct sol_colors *colors, u32 i)
{
	return colors && colors->by_llc && sol_bit(colors->llc, i);
}

/*
 * May @new name this colour, @old being given back? @kind and @i are for the
 * message.
 */
static int check_use(const struct sol_use *use, bool had,
		     const struct sol_colors *old, const struct sol_colors *new,
		     const char *kind, u32 i, struct sol_err *err)
{
	u32 owners = use->owners - had;
	u32 exclusive = use->exclusive - (had && old->exclusive);

	if (exclusive)
		return sol_refuse(err, 0, -EBUSY,
				  "%s %u belongs to an exclusive owner", kind,
				  i);
	if (new->exclusive && owners)
		return sol_refuse(err, 0, -EBUSY,
				  "%s %u has %u other owner%s, an exclusive one must be alone",
				  kind, i, owners, owners == 1 ? "" : "s");
	return 0;
}

static int check_change(const struct sol_palette *p,
			const struct sol_colors *old,
			const struct sol_colors *new, struct sol_err *err)
{
	const struct sol_map *map = p->map;
	u32 i;
	int rc;

	if (new->by_bank && !any_bit(new->sets, map->n_bank_sets))
		return sol_refuse(err, 0, -EINVAL,
				  "no bank set is named, of %u",
				  map->n_bank_sets);
	if (new->by_llc && !any_bit(new->llc, map->n_llc))
		return sol_refuse(err, 0, -EINVAL,
				  "no LLC colour is named, of %u", map->n_llc);
	for (i = 0; i < map->n_bank_sets; i++) {
		rc = names_set(new, i) ?
		     check_use(&p->set[i], names_set(old, i), old, new,
			       "bank set", i, err) : 0;
		if (rc)
			return rc;
	}
	for (i = 0; i < map->n_llc; i++) {
		rc = names_llc(new, i) ?
		     check_use(&p->llc[i], names_llc(old, i), old, new,
			       "LLC colour", i, err) : 0;
		if (rc)
			return rc;
	}
	if (!sol_colors_any(map, new))
		return sol_refuse(err, 0, -EINVAL,
				  "none of these bank sets can hold a page of these LLC colours: the map uses the same address bits for both");
	return 0;
}

static void count(struct sol_use *use, const struct sol_colors *colors, int by)
{
	use->owners += by;
	if (colors->exclusive)
		use->exclusive += by;
	if (colors->realtime)
		use->realtime += by;
}

static void count_all(struct sol_palette *p, const struct sol_colors *colors,
		      int by)
{
	u32 i;

	for (i = 0; i < p->map->n_bank_sets; i++)
		if (names_set(colors, i))
			count(&p->set[i], colors, by);
	for (i = 0; i < p->map->n_llc; i++)
		if (names_llc(colors, i))
			count(&p->llc[i], colors, by);
}

int sol_palette_change(struct sol_palette *p, const struct sol_colors *old,
		       const struct sol_colors *new, struct sol_err *err)
{
	int rc;

	if (new) {
		rc = check_change(p, old, new, err);
		if (rc)
			return rc;
	}
	if (old)
		count_all(p, old, -1);
	if (new)
		count_all(p, new, 1);
	return 0;
}

/* ---- Cells of a colour set ---- */

static bool wants_set(const struct sol_colors *colors, u32 i)
{
	return !colors->by_bank || sol_bit(colors->sets, i);
}

static bool wants_llc(const struct sol_colors *colors, u32 i)
{
	return !colors->by_llc || sol_bit(colors->llc, i);
}

u32 sol_colors_cells(const struct sol_map *map, const struct sol_colors *colors,
		     u32 *cell, u32 max)
{
	u32 set, llc, n = 0;

	for (set = 0; set < map->n_bank_sets; set++)
		for (llc = 0; wants_set(colors, set) && llc < map->n_llc; llc++)
			if (wants_llc(colors, llc) &&
			    sol_map_cell_exists(map, set, llc)) {
				if (n < max)
					cell[n] = (set << map->n_llc_bits) + llc;
				n++;
			}
	return n;
}

u32 sol_cells_per_set(const struct sol_map *map, const u32 *cell, u32 n)
{
	u32 of_set = 0;

	while (of_set < n && cell[of_set] >> map->n_llc_bits ==
			     cell[0] >> map->n_llc_bits)
		of_set++;
	return n % of_set ? 1 : of_set;
}

bool sol_colors_any(const struct sol_map *map, const struct sol_colors *colors)
{
	u32 set, llc;

	for (set = 0; set < map->n_bank_sets; set++)
		for (llc = 0; wants_set(colors, set) && llc < map->n_llc; llc++)
			if (wants_llc(colors, llc) &&
			    sol_map_cell_exists(map, set, llc))
				return true;
	return false;
}

u64 sol_colors_bytes(const struct sol_map *map, const struct sol_colors *colors)
{
	u64 frames = 0;
	u32 set, llc;

	for (set = 0; set < map->n_bank_sets; set++) {
		if (!wants_set(colors, set))
			continue;
		if (!colors->by_llc) {
			frames += sol_map_set_frames(map, set);
			continue;
		}
		for (llc = 0; llc < map->n_llc; llc++)
			if (wants_llc(colors, llc) &&
			    sol_map_cell_exists(map, set, llc))
				frames += sol_map_cell_frames(map, set, llc);
	}
	return frames << sol_frame_shift(map);
}
