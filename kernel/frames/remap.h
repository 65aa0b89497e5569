/* SPDX-License-Identifier: GPL-2.0 */
/* Remap: frames are coloured by another address map. */
#ifndef SOLOIST_REMAP_H
#define SOLOIST_REMAP_H

#include "../../core/map/addrmap.h"

/**
 * sol_remap() - colour by this map from now on
 * @map: stays in use until the next call; NULL: none
 * @err: why it was refused
 *
 * All listed frames go back; frames in use by the old map's colours become the
 * system's own. Return: 0, -EINVAL (the map contradicts the kernel's nodes),
 * -ENOMEM.
 */
int sol_remap(const struct sol_map *map, struct sol_err *err);

#endif /* SOLOIST_REMAP_H */
