/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trampolines of direct hooks. Included only by files that define some. How they are
 * entered and left is the architecture's (x86/, arm64/).
 *
 *	SOL_TRAMPOLINE(name, c_side, test)	may answer in its place
 *	SOL_TRAMPOLINE_ARG(name, c_side, test, n)  result replaces argument n
 *
 * @test is made of conditions: does a call of the hooked function concern us? It jumps
 * to 1f if so, and falls through if not. Every architecture has
 *
 *	SOL_IF_ANY		always
 *	SOL_IF_TASK		the current task has a group id
 *	SOL_IF_MM(n)		the address space of the vma in argument n has one
 *	SOL_IF_MM_MAYBE(n)	the same, where the vma or its address space may be NULL
 *	SOL_IF_OWNED(n, owned)	argument n is a page of ours, by a struct sol_owned
 *	SOL_IF_COLOR_ALLOC	the third argument (mmap()'s prot) has bit 30, COLOR_ALLOC
 *	SOL_UNLESS_WRITE	the third argument has a bit of SOL_WRITE_FLAGS(): jumps to 4f
 *	SOL_UNLESS_MOVABLE	the first argument has __GFP_MOVABLE: jumps to 4f
 *
 * Some use offsets that are absolute symbols of the assembler: a file that has them
 * states SOL_TASK_OFFSETS() or SOL_WRITE_FLAGS() once.
 */
#ifndef SOLOIST_COMPAT_TRAMPOLINE_H
#define SOLOIST_COMPAT_TRAMPOLINE_H

#include <linux/mm.h>

/* A C side returns SOL_PASS to let the original run. No pointer, no errno. */
#define SOL_PASS_WORD	0x534f4c31
#define SOL_PASS	((unsigned long)SOL_PASS_WORD)

/*
 * An array with a byte for each frame, not 0 where the frame is ours. The byte of a page
 * is at @origin plus its address / 64, so that a trampoline adds once. Set before the
 * hooks are attached.
 */
struct sol_owned {
	unsigned long origin;
	unsigned long end;	/* address behind the last byte */
};

static_assert(sizeof(struct page) == 64);
static_assert((__force unsigned int)__GFP_MOVABLE == 1 << 3);

static inline struct sol_owned sol_owned_of(const u8 *bytes, u64 n)
{
	return (struct sol_owned){
		.origin = (unsigned long)bytes - ((unsigned long)pfn_to_page(0) >> 6),
		.end = (unsigned long)(bytes + n),
	};
}

/* What a trampoline ends with, on any processor. */
#define SOL_TRAMPOLINE_TAIL(name)				\
	"	.size	" name ", . - " name "\n"		\
	"	.popsection\n"

#if defined(CONFIG_X86_64)
#include "x86/conditions.h"
#include "x86/trampoline.h"
#elif defined(CONFIG_ARM64)
#include "arm64/conditions.h"
#include "arm64/trampoline.h"
#else
#error "soloist has trampolines for x86-64 and arm64; another architecture needs its own in compat/"
#endif

#endif /* SOLOIST_COMPAT_TRAMPOLINE_H */
