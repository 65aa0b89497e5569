/* SPDX-License-Identifier: GPL-2.0 */
/* AMD's system management network, which only x86 has. */
#ifndef SOLOIST_COMPAT_SMN_H
#define SOLOIST_COMPAT_SMN_H

#ifdef CONFIG_X86
#include "x86/smn.h"
#else
#define SOL_HAS_SMN	0
#endif

#endif /* SOLOIST_COMPAT_SMN_H */
