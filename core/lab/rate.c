// SPDX-License-Identifier: GPL-2.0 OR MIT
/* An actuator that sets a rate in place of stopping a core. */
#include "rate.h"

u32 sol_regulator_percent(const struct sol_regulator *reg, u32 core, u32 min,
			  u32 step)
{
	const struct sol_core *c = &reg->core[core];
	u64 peak = sol_regulation_lines(&reg->set, reg->set.peak), sum = 0;
	u32 percent, kind;

	if (!c->taking_part || !c->begun || !c->regulated ||
	    reg->domain[c->domain].best_effort)
		return 100;
	for (kind = 0; kind < SOL_TRAFFICS; kind++)
		if (reg->r_min[kind])
			sum += c->meter[kind].budget;
	if (sum >= peak)
		return 100;
	percent = sol_div(sum * 100 + peak - 1, peak);
	percent = (percent + step - 1) / step * step;
	if (percent < min)
		percent = min;
	return percent > 100 ? 100 : percent;
}
