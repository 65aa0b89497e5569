/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A small test runner. TEST(name) { ... } registers itself; CHECK and CHECK_EQ
 * end a test that fails, with file and line. Random numbers come from one
 * seed, which is printed and can be given as the program's argument.
 */
#ifndef SOLOIST_TESTS_CHECK_H
#define SOLOIST_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "map/addrmap.h"
#include "lab/dram.h"

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

void test_register(struct test *test);
_Noreturn void test_fail(const char *file, int line, const char *format, ...);

#define TEST(id)							\
	static void id(void);						\
	static struct test id##_test = { #id, id, NULL };		\
	static void __attribute__((constructor)) id##_register(void)	\
	{								\
		test_register(&id##_test);				\
	}								\
	static void id(void)

#define CHECK(condition)						\
	do {								\
		if (!(condition))					\
			test_fail(__FILE__, __LINE__, "%s", #condition); \
	} while (0)

#define CHECK_EQ(a, b)							\
	do {								\
		unsigned long long a_ = (a), b_ = (b);			\
									\
		if (a_ != b_)						\
			test_fail(__FILE__, __LINE__,			\
				  "%s is %lld (0x%llx), %s is %lld (0x%llx)", \
				  #a, a_, a_, #b, b_, b_);		\
	} while (0)

/* Random numbers: 64 bits; below @n; true once in @n. */
u64 rnd(void);
u64 below(u64 n);
bool once_in(u64 n);

/* Parse tests/maps/NAME.map; the test fails if that is refused. */
void load_map(struct sol_map *map, const char *name);
void load_map_of(struct sol_map *map, const char *name, u32 frame_shift);

/* A random map that is small enough to visit every frame of it, of any size. */
void random_map(struct sol_map *map);

#endif /* SOLOIST_TESTS_CHECK_H */
