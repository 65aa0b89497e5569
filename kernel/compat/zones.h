/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lowest zone whose frames a program may have. ZONE_DMA is what devices need that
 * reach nothing else: 16 MiB of an x86 machine, for cards of ISA, which are left to
 * them. On arm64 it is all that 32 bits reach, or 30 on a Raspberry Pi 4: most or all of
 * a board's memory, and what the kernel gives programs when other zones are empty.
 */
#ifndef SOLOIST_COMPAT_ZONES_H
#define SOLOIST_COMPAT_ZONES_H

#include <linux/mmzone.h>

#ifdef CONFIG_ARM64
#define SOL_LOWEST_ZONE	0
#else
#define SOL_LOWEST_ZONE	ZONE_DMA32
#endif

#endif /* SOLOIST_COMPAT_ZONES_H */
