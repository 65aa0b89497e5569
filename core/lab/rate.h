/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SOLOIST_RATE_H
#define SOLOIST_RATE_H

#include "../regulator/regulator.h"

/**
 * sol_regulator_percent() - for an actuator that sets a rate
 * @min: smallest value that it takes, percent
 * @step: its granularity, percent, at least 1
 *
 * Memory bandwidth allocation (resctrl's MBA) throttles by itself to a share
 * of the peak. Then the budget of the period that runs is handed over as a
 * rate, rounded up to a step, and SOL_STOP need not be obeyed.
 */
u32 sol_regulator_percent(const struct sol_regulator *reg, u32 core, u32 min,
			  u32 step);

#endif /* SOLOIST_RATE_H */
