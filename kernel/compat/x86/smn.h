/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AMD's system management network: which header declares amd_smn_read(), and
 * which option has it. Both moved in 6.14, the header once more in 6.16.
 */
#ifndef SOLOIST_COMPAT_X86_SMN_H
#define SOLOIST_COMPAT_X86_SMN_H

#include <linux/kconfig.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <asm/amd/node.h>
#else
#include <asm/amd_node.h>
#endif
#define SOL_HAS_SMN	IS_ENABLED(CONFIG_AMD_NODE)
#else
#include <asm/amd_nb.h>
#define SOL_HAS_SMN	IS_ENABLED(CONFIG_AMD_NB)
#endif

#endif /* SOLOIST_COMPAT_X86_SMN_H */
