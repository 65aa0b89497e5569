/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AMD's system management network: whose header declares amd_smn_read(), and
 * whether the kernel has it. Its header moved in 6.14, its option in 6.15.
 */
#ifndef SOLOIST_COMPAT_SMN_H
#define SOLOIST_COMPAT_SMN_H

#if defined(CONFIG_X86) && __has_include("asm/amd/node.h")
#include <asm/amd/node.h>
#define SOL_HAS_SMN	IS_ENABLED(CONFIG_AMD_NODE)
#elif defined(CONFIG_X86)
#include <asm/amd_nb.h>
#define SOL_HAS_SMN	IS_ENABLED(CONFIG_AMD_NB)
#else
#define SOL_HAS_SMN	0
#endif

#endif /* SOLOIST_COMPAT_SMN_H */
