/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SOLOIST_RATE_H
#define SOLOIST_RATE_H

#include "../regulator/regulator.h"

/**
 * sol_regulator_percent() - a core's budget, for an actuator that sets a rate
 * @reg: regulator
 * @core: 0 to n_cores - 1
 * @min: smallest value that it takes, percent
 * @step: its granularity, percent, at least 1
 *
 * Memory bandwidth allocation (resctrl's MBA) throttles by itself to a share
 * of the peak. Then the budget of the period that runs is handed over as a
 * rate, rounded up to a step, and SOL_STOP need not be obeyed.
 *
 * Return: percent of the peak, up to 100.
 */
u32 sol_regulator_percent(const struct sol_regulator *reg, u32 core, u32 min,
			  u32 step);

#endif /* SOLOIST_RATE_H */
