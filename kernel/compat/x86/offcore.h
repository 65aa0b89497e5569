/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which raw event counts the data that a core of Intel's asks the uncore for, prefetchers
 * too: OFFCORE_REQUESTS.DATA_RD. Its number moved to 0x21 with Golden Cove, and 0xb0
 * counts the divider there. Atoms have none, nor do models before Westmere. Models and
 * numbers are those of the kernel's tools/perf/pmu-events. A test compiles this, too.
 */
#ifndef SOLOIST_COMPAT_X86_OFFCORE_H
#define SOLOIST_COMPAT_X86_OFFCORE_H

#include "../../../core/types.h"

/* 0: none is known. */
static inline u32 sol_offcore_of(u32 family, u32 model)
{
	if (family != 6)
		return 0;
	switch (model) {
	case 0x25: case 0x2c: case 0x2f:				/* Westmere */
	case 0x2a: case 0x2d:						/* Sandy Bridge */
	case 0x3a: case 0x3e:						/* Ivy Bridge */
	case 0x3c: case 0x3f: case 0x45: case 0x46:			/* Haswell */
	case 0x3d: case 0x47: case 0x4f: case 0x56:			/* Broadwell */
	case 0x4e: case 0x5e: case 0x55:				/* Skylake */
	case 0x8e: case 0x9e: case 0xa5: case 0xa6:			/* Kaby, Comet Lake */
	case 0x6a: case 0x6c: case 0x7d: case 0x7e:			/* Ice Lake */
	case 0x8c: case 0x8d: case 0xa7:				/* Tiger, Rocket Lake */
		return 0x08b0;
	/* Of hybrids perf counts raw events on the P cores alone, and refuses the others. */
	case 0x97: case 0x9a: case 0xb7: case 0xba: case 0xbf:		/* Alder, Raptor Lake */
	case 0xaa: case 0xac:						/* Meteor Lake */
	case 0x8f: case 0xcf:						/* Sapphire, Emerald Rapids */
	case 0xad: case 0xae:						/* Granite Rapids */
		return 0x0821;
	default:
		return 0;
	}
}

#endif /* SOLOIST_COMPAT_X86_OFFCORE_H */
