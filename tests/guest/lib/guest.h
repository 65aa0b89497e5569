/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What guest tests share: the control interface, the audit of a process'
 * pages against the loaded map, and the way results are printed.
 *
 * A test prints one line per check, `ok NAME` or `FAIL NAME: reason`, and
 * exits 0 if none failed. Colours are computed by core/, from the map text
 * that the module gives back, on frame numbers that the stock kernel shows in
 * /proc/PID/pagemap: nothing that the module says of itself is believed.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "../../../core/colors/palette.h"

#define GUEST_ROOT "/sys/kernel/config/soloist"
#define GUEST_PAGE guest_page()
#define GUEST_HUGE guest_huge()

#define GUEST_PRINTF(a, b) __attribute__((format(printf, a, b)))

/* Bytes of a page of this kernel. */
static inline unsigned long guest_page(void)
{
	static unsigned long bytes;

	if (!bytes)
		bytes = sysconf(_SC_PAGESIZE);
	return bytes;
}

/* Bytes that one page of a page table maps, by entries of 8 bytes: a huge page. */
static inline unsigned long guest_huge(void)
{
	return guest_page() * (guest_page() / 8);
}

/* ---- results ---- */

/*
 * One check: prints `ok NAME` or `FAIL NAME: ...`. Returns @good, which comes first: a
 * write in it, say, before the guest_status() among the words.
 */
#define guest_check(good, ...)					\
	({							\
		bool good_ = (good);				\
								\
		guest_checked(good_, __VA_ARGS__);		\
	})
bool guest_checked(bool good, const char *name, const char *fmt, ...)
	GUEST_PRINTF(3, 4);
/* A check that this guest cannot make; counted apart, never as passed. */
void guest_skip(const char *name, const char *why);
/* Setting the scene failed: print why, exit 1. */
void guest_die(const char *fmt, ...) GUEST_PRINTF(1, 2) __attribute__((noreturn));
/* For main's return: 0 if no check failed. */
int guest_exit(void);

/* ---- the control interface; paths are relative to GUEST_ROOT ---- */

/* Write @value to a control file. 0 or -errno. */
int guest_write(const char *path, const char *value);
int guest_write_bytes(const char *path, const char *value, size_t size);
int guest_writef(const char *path, const char *fmt, ...) GUEST_PRINTF(2, 3);
/* Read a control file whole into a static buffer, "" if unreadable. */
const char *guest_read(const char *path);
/* Value of `key` in a file of `key value` lines, -1 if absent. */
long long guest_stat(const char *path, const char *key);
/* The same in a text that was read, for values that belong together. */
long long guest_stat_in(const char *text, const char *key);
/* The sentence of the last refusal. */
const char *guest_status(void);

/* Make groups/NAME with these bank sets (NULL: none yet). Dies on failure. */
void guest_group(const char *name, const char *bank_sets);
/* Move the calling thread into groups/NAME. 0 or -errno. */
int guest_join(const char *name);
/* In a child: join @group, then map @bytes without pages. Exits with 3 or 4 if it can't. */
char *guest_member_memory(const char *group, size_t bytes);
/* Remove groups/NAME. 0 or -errno. */
int guest_ungroup(const char *name);
/*
 * Load the map @text, for which all groups are removed: they are gone when the last of
 * their pages is back, in seconds. 0 or -errno.
 */
int guest_take_map(const char *text);

/* ---- the audit ---- */

/* The loaded map, parsed by core/. Dies if there is none. */
const struct sol_map *guest_map(void);
/* Bank set and LLC colour of a frame, or -1 if the map has no such frame. */
int guest_set_of(u64 pfn);
int guest_llc_of(u64 pfn);
/* Frame of a virtual address of @pid (0: self), 0 if not present. */
u64 guest_pfn(pid_t pid, const void *addr);

/* Pages by what they are. */
struct guest_audit {
	long present;	/* of private mappings; the sum of in and out */
	long in;	/* in the bank sets (and LLC colours) asked for */
	long out;	/* private, present, elsewhere */
	long zero;	/* the shared zero page */
	long huge;	/* of present: part of a huge page */
	long shared;	/* of shared mappings, or [vvar] and the like */
	long swapped;
	unsigned long first_out;	/* an address that is out, for messages */
	char where[64];			/* its mapping */
};

/*
 * Walk all mappings of @pid (0: self), or of those whose name contains @only
 * (NULL: all). @sets, @llc: lists as the kernel writes them, NULL: any.
 */
struct guest_audit guest_audit(pid_t pid, const char *only, const char *sets,
			       const char *llc);
/* The same for a range of the caller's addresses. */
struct guest_audit guest_audit_range(const void *addr, size_t bytes,
				     const char *sets, const char *llc);
/* Check that every private page of @pid is in colour. */
bool guest_check_all_in(const char *name, pid_t pid, const char *sets,
			const char *llc);

/* Write a setting of the stock kernel's, as set_kernel() does; dies on failure. */
void guest_set_kernel(const char *path, const char *value);

/* mmap @bytes of private anonymous memory; dies on failure. */
void *guest_map_anon(size_t bytes);
/* Write one byte to each page. */
void guest_touch(void *addr, size_t bytes);

/* Interrupts by which others made @cpu (-1: any) call a function, not the TLB's. */
long guest_calls(int cpu);
/* The same to flush its TLB; x86 only, arm64 interrupts nobody for that. */
long guest_flushes(int cpu);
/* From now on the caller runs on @cpu only; CPU 0 is of node 0. */
void guest_run_on(int cpu);

static inline long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* The same in seconds. */
static inline double now_s(void)
{
	return now_ns() / 1e9;
}

#endif /* GUEST_H */
