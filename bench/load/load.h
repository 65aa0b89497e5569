/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the load programs share: arguments, memory, time and what they print.
 *
 * Every program does passes over its memory until its time or its number of
 * passes is up, notes how long each took, and prints one line of text or, with
 * --json, one JSON object. MB is 10^6 bytes, MiB 2^20.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LINE 64

/* What the command line asked for. */
struct load {
	const char *name;	/* of the program */
	const char *kind;	/* word behind the options, or NULL */
	uint64_t bytes;		/* memory of each thread */
	uint64_t stride;	/* bytes from one access to the next */
	uint64_t passes;	/* how many; 0: by time */
	double seconds;		/* how long; 0: by passes */
	int threads;
	bool json;
	bool huge;		/* ask for huge pages */
	bool can_thread;	/* the program knows --threads */
	bool can_choose;	/* the program knows --lines */
	const char *lines;	/* which lines of its memory, or NULL: all */
};

/* What came of it. */
struct result {
	double seconds;		/* of all passes */
	uint64_t passes;
	uint64_t accesses;	/* of all passes */
	uint64_t bytes;		/* moved between core and memory, by the program's account */
	double *pass_seconds;	/* of each pass */
	double checksum;	/* keeps the compiler honest */
	const char *verified;	/* "yes", "no", or NULL: nothing to verify */
};

/* Reads the command line; prints help and ends where asked or misused. @kinds
 * names what the word behind the options may be, ended by NULL; first is default. */
void load_parse(struct load *load, int argc, char **argv, const char *about,
		const char *const *kinds);

/* @bytes of memory, touched; ends the program where there is none. */
void *load_memory(const struct load *load, uint64_t bytes);

/* Of the @n addresses @at those whose physical address is what load->lines says, moved
 * to the front: how many. Ends the program where physical addresses can't be had. */
uint64_t load_choose(const struct load *load, char **at, uint64_t n);

/* Seconds since some fixed time. */
double load_now(void);

/* Whether another pass shall be done; notes the end of the last one. */
bool load_again(const struct load *load, struct result *result);

/* Prints what came of it; the exit status to end with. */
int load_print(const struct load *load, const struct result *result);

#endif
