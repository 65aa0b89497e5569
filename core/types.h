/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Types for freestanding code: core/ is compiled into the kernel module, into
 * the Rust crates and into the unit tests, from these same sources. It calls
 * no allocator, takes no lock and reads no clock; its callers do.
 */
#ifndef SOLOIST_TYPES_H
#define SOLOIST_TYPES_H

#ifdef __KERNEL__

#include <linux/types.h>
#include <linux/limits.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/math64.h>
#include <asm/barrier.h>
#include <asm/page.h>

static inline unsigned int sol_parity64(u64 x)
{
	return hweight64(x) & 1;
}

/* 64 by 32 bits: 32-bit kernels have no operator for it. */
static inline u64 sol_div(u64 n, u32 d)
{
	return div_u64(n, d);
}

/* The high half of the product. */
static inline u64 sol_mul_high(u64 a, u64 b)
{
	return mul_u64_u64_shr(a, b, 64);
}

#define SOL_READ(x)	READ_ONCE(x)
#define SOL_WRITE(x, v)	WRITE_ONCE(x, v)
/* A reader that sees the value also sees all earlier writes. */
#define SOL_WRITE_LAST(x, v)	smp_store_release(&(x), v)

#else /* userspace: Rust crates, unit tests, fuzzers */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

static inline unsigned int sol_parity64(u64 x)
{
	return __builtin_parityll(x);
}

static inline u64 sol_div(u64 n, u32 d)
{
	return n / d;
}

static inline u64 sol_mul_high(u64 a, u64 b)
{
	return (__uint128_t)a * b >> 64;
}

/* For words that others read without the lock: one whole access. */
#define SOL_READ(x)	(*(const volatile __typeof__(x) *)&(x))
#define SOL_WRITE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define SOL_WRITE_LAST(x, v)	__atomic_store_n(&(x), v, __ATOMIC_RELEASE)

#endif

#define SOL_NO_FRAME	(~(u32)0)

/* A refusal in words, as last_cmd_status and the CLI print it. */
#define SOL_ERR_LEN	160
struct sol_err {
	u32 line;		/* line of the text that was wrong, 0: none */
	char text[SOL_ERR_LEN];
};

#endif /* SOLOIST_TYPES_H */
