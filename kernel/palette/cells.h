/* SPDX-License-Identifier: GPL-2.0 */
/* Cells: what the fault path needs of a group's colours. sol_group_mutex. */
#ifndef SOLOIST_CELLS_H
#define SOLOIST_CELLS_H

struct sol_cells;
struct sol_colors;
struct sol_group;

/**
 * sol_cells_new() - the cells of a colour set
 * @colors: of the map in use
 *
 * Return: the cells, to be published or kvfree()d; NULL: @colors restricts
 * nothing; an ERR_PTR: no memory.
 */
struct sol_cells *sol_cells_new(const struct sol_colors *colors);

/**
 * sol_cells_publish() - a group's faults go by other cells from now on
 * @group: may have tasks
 * @cells: NULL: it does not colour any more
 */
void sol_cells_publish(struct sol_group *group, struct sol_cells *cells);

/* The shrinker leaves @group's cells their parts of ->reserve, as it is now. */
void sol_cells_reserve(struct sol_group *group);

#endif /* SOLOIST_CELLS_H */
