// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static void __attribute__((noreturn))
misused(const struct load *load, const char *what, const char *value)
{
	fprintf(stderr, "%s: %s '%s'; --help says what is known\n", load->name,
		what, value);
	exit(2);
}

/* A size such as 512K, 64M, 1G (powers of two); 0 is none. */
static uint64_t size(const struct load *load, const char *text)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t n;
	int shift = 0;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		end++;
	}
	if (errno || end == text || *end || *text == '-' || !n ||
	    n > (UINT64_MAX >> 1) >> shift)
		misused(load, "no size:", text);
	return n << shift;
}

static double number(const struct load *load, const char *text, double most)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end || !(n >= 0 && n <= most))
		misused(load, "no number:", text);
	return n;
}

static void __attribute__((noreturn))
help(const struct load *load, const char *about, const char *const *kinds)
{
	printf("%s - %s\n\nusage: %s [options]", load->name, about, load->name);
	if (kinds[0]) {
		printf(" [%s", kinds[0]);
		for (int i = 1; kinds[i]; i++)
			printf("|%s", kinds[i]);
		printf("]");
	}
	printf("\n"
	       "  --size SIZE      memory of each thread (%" PRIu64 " MiB)\n"
	       "  --stride SIZE    bytes from one access to the next (%" PRIu64 ")\n"
	       "  --passes N       so many passes over it\n"
	       "  --seconds T      as many passes as fit (%g); 0: until it is stopped\n"
	       "  --huge           in huge pages, where the kernel has some\n"
	       "  --json           print JSON\n",
	       load->bytes >> 20, load->stride, load->seconds);
	if (load->can_thread)
		printf("  --threads N      (%d)\n", load->threads);
	if (load->can_choose)
		printf("  --lines 14^18=1,20=0\n"
		       "                   of its memory only lines whose physical address has these\n"
		       "                   exclusive ors of bits, such as a bank's (as root)\n");
	exit(0);
}

void load_parse(struct load *load, int argc, char **argv, const char *about,
		const char *const *kinds)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "stride", required_argument, NULL, 'd' },
		{ "passes", required_argument, NULL, 'p' },
		{ "seconds", required_argument, NULL, 't' },
		{ "threads", required_argument, NULL, 'n' },
		{ "huge", no_argument, NULL, 'H' },
		{ "json", no_argument, NULL, 'j' },
		{ "lines", required_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case 's':
			load->bytes = size(load, optarg);
			break;
		case 'd':
			load->stride = size(load, optarg);
			break;
		case 'p':
			load->passes = number(load, optarg, 1e15);
			load->seconds = 0;
			break;
		case 't':
			load->seconds = number(load, optarg, 1e9);
			load->passes = load->seconds > 0 ? 0 : UINT64_MAX;
			break;
		case 'n':
			if (!load->can_thread)
				misused(load, "--threads is not for this program:", optarg);
			load->threads = number(load, optarg, 1024);
			break;
		case 'H':
			load->huge = true;
			break;
		case 'j':
			load->json = true;
			break;
		case 'l':
			if (!load->can_choose)
				misused(load, "--lines is not for this program:", optarg);
			load->lines = optarg;
			break;
		case 'h':
			help(load, about, kinds);
		default:
			exit(2);
		}
	}
	load->kind = kinds[0];
	if (optind < argc) {
		for (int i = 0; kinds[i]; i++)
			if (!strcmp(kinds[i], argv[optind]))
				load->kind = kinds[i];
		if (optind + 1 < argc || !load->kind ||
		    strcmp(load->kind, argv[optind]))
			misused(load, "unknown word:", argv[argc - 1]);
	}
	if (load->stride > load->bytes)
		misused(load, "--stride is larger than", "--size");
	if (load->threads < 1)
		misused(load, "--threads:", "0");
	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
}

void *load_memory(const struct load *load, uint64_t bytes)
{
	/* Whole huge pages, aligned, so that asking for them can help. */
	uint64_t huge = 2 << 20, whole = (bytes + huge - 1) / huge * huge;
	char *at = mmap(NULL, whole + huge, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		fprintf(stderr, "%s: no memory for %" PRIu64 " MiB: %s\n",
			load->name, bytes >> 20, strerror(errno));
		exit(1);
	}
	at += (huge - (uintptr_t)at % huge) % huge;
	madvise(at, whole, load->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(at, 1, bytes);
	return at;
}

/* One exclusive or of address bits, and what it shall be. */
struct function {
	uint64_t mask;
	int value;
};

/* Reads "14^18=1,20=0" into @f; how many there are. */
static int functions(const struct load *load, struct function *f, int most)
{
	const char *text = load->lines;
	int n = 0;

	for (;;) {
		char *end;
		unsigned long bit = strtoul(text, &end, 10);

		if (n == most || end == text || bit > 62)
			misused(load, "--lines: no list such as 14^18=1,20=0:", load->lines);
		f[n].mask ^= 1ull << bit;
		text = end + 1;
		if (*end == '^')
			continue;
		if (*end != '=' || (*text != '0' && *text != '1'))
			misused(load, "--lines: no list such as 14^18=1,20=0:", load->lines);
		f[n++].value = *text++ - '0';
		if (!*text)
			return n;
		if (*text++ != ',')
			misused(load, "--lines: no list such as 14^18=1,20=0:", load->lines);
	}
}

/* The physical address of @at; 0 where nobody tells. One page after the other is asked. */
static uint64_t physical(int pagemap, const char *at)
{
	static uint64_t asked = UINT64_MAX, entry;
	uint64_t bytes = sysconf(_SC_PAGESIZE), page = (uintptr_t)at / bytes;

	if (page != asked &&
	    pread(pagemap, &entry, sizeof(entry), page * sizeof(entry)) != sizeof(entry))
		return 0;
	asked = page;
	/* Bit 63: in memory; 54 to 0: the frame, 0 for who may not know. */
	if (!(entry >> 63) || !(entry & ((1ull << 55) - 1)))
		return 0;
	return (entry & ((1ull << 55) - 1)) * bytes + (uintptr_t)at % bytes;
}

uint64_t load_choose(const struct load *load, char **at, uint64_t n)
{
	struct function f[32] = { 0 };
	uint64_t kept = 0;
	int pagemap, n_f;

	if (!load->lines)
		return n;
	n_f = functions(load, f, 32);
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t address = pagemap < 0 ? 0 : physical(pagemap, at[i]);
		bool fits = true;

		if (!address) {
			fprintf(stderr,
				"%s: --lines: no physical addresses in /proc/self/pagemap; run it as root\n",
				load->name);
			exit(1);
		}
		for (int j = 0; j < n_f; j++)
			fits &= __builtin_parityll(address & f[j].mask) == f[j].value;
		if (fits)
			at[kept++] = at[i];
	}
	close(pagemap);
	return kept;
}

double load_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

bool load_again(const struct load *load, struct result *result)
{
	static double began, last;
	static uint64_t room;
	double now = load_now();

	if (!began) {
		began = last = now;
		return true;
	}
	if (result->passes == room) {
		room = room ? 2 * room : 1024;
		result->pass_seconds =
			realloc(result->pass_seconds, room * sizeof(double));
		if (!result->pass_seconds) {
			fprintf(stderr, "%s: out of memory\n", load->name);
			exit(1);
		}
	}
	result->pass_seconds[result->passes++] = now - last;
	result->seconds = now - began;
	last = now;
	if (stopped)
		return false;
	return load->passes ? result->passes < load->passes :
			      result->seconds < load->seconds;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int load_print(const struct load *load, const struct result *r)
{
	double mean = r->seconds / r->passes, squares = 0, *sorted;
	double rate = r->bytes / r->seconds, ns;
	uint64_t n = r->passes;

	ns = 1e9 * r->seconds / r->accesses;
	sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return 1;
	memcpy(sorted, r->pass_seconds, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_size);
	for (uint64_t i = 0; i < n; i++)
		squares += (sorted[i] - mean) * (sorted[i] - mean);
#define MS(at) (1e3 * sorted[(uint64_t)((n - 1) * (at))])
	if (load->json)
		printf("{\"name\": \"%s\", \"kind\": \"%s\", \"bytes\": %" PRIu64
		       ", \"threads\": %d, \"passes\": %" PRIu64
		       ", \"seconds\": %.9f, \"ns_per_access\": %.4f, \"bytes_per_second\": %.0f"
		       ", \"pass_ms\": {\"mean\": %.6f, \"stddev\": %.6f, \"min\": %.6f, \"p50\": %.6f, \"p99\": %.6f, \"max\": %.6f}"
		       ", \"verified\": %s, \"checksum\": %.17g}\n",
		       load->name, load->kind ? load->kind : "", load->bytes,
		       load->threads, n, r->seconds, ns, rate, 1e3 * mean,
		       n > 1 ? 1e3 * sqrt(squares / (n - 1)) : 0, MS(0),
		       MS(0.5), MS(0.99), MS(1),
		       !r->verified ? "null" :
		       !strcmp(r->verified, "yes") ? "true" :
						     "false",
		       r->checksum);
	else
		printf("%s %s: %.1f MB/s, %.2f ns an access, %" PRIu64
		       " passes of %.1f MiB in %.3f s; a pass %.3f ms, p50 %.3f, p99 %.3f, max %.3f%s%s\n",
		       load->name, load->kind ? load->kind : "", rate / 1e6, ns,
		       n, load->bytes / 1048576.0, r->seconds, 1e3 * mean,
		       MS(0.5), MS(0.99), MS(1),
		       r->verified ? "; verified: " : "",
		       r->verified ? r->verified : "");
	free(sorted);
	return r->verified && strcmp(r->verified, "yes");
}
