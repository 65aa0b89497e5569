/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "guest.h"
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PM_PRESENT	(1ull << 63)
#define PM_SWAPPED	(1ull << 62)
#define PM_PFN		((1ull << 55) - 1)
#define KPF_THP		22
#define KPF_ZERO_PAGE	24

static int n_failed;

bool guest_checked(bool good, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (good) {
		printf("ok %s\n", name);
	} else {
		n_failed++;
		printf("FAIL %s: ", name);
		va_start(ap, fmt);
		vprintf(fmt, ap);
		va_end(ap);
		printf("\n");
	}
	fflush(stdout);
	return good;
}

void guest_skip(const char *name, const char *why)
{
	printf("skip %s: %s\n", name, why);
	fflush(stdout);
}

void guest_die(const char *fmt, ...)
{
	va_list ap;

	printf("FAIL setup: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

int guest_exit(void)
{
	return n_failed != 0;
}

static const char *control_path(const char *path)
{
	static __thread char full[512];

	snprintf(full, sizeof(full), "%s/%s", GUEST_ROOT, path);
	return full;
}

int guest_write(const char *path, const char *value)
{
	return guest_write_bytes(path, value, strlen(value));
}

int guest_write_bytes(const char *path, const char *value, size_t size)
{
	int fd = open(control_path(path), O_WRONLY | O_TRUNC);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, value, size);
	if (n < 0)
		err = -errno;
	/* binary attributes take effect on close */
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int guest_writef(const char *path, const char *fmt, ...)
{
	char value[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	return guest_write(path, value);
}

const char *guest_read(const char *path)
{
	static __thread char text[65536];
	size_t have = 0;
	ssize_t n;
	int fd = open(control_path(path), O_RDONLY);

	text[0] = 0;
	if (fd < 0)
		return text;
	while (have < sizeof(text) - 1 &&
	       (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += n;
	text[have] = 0;
	close(fd);
	return text;
}

long long guest_stat_in(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (text && *text) {
		if (!strncmp(text, key, len) && text[len] == ' ')
			return strtoll(text + len + 1, NULL, 0);
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return -1;
}

long long guest_stat(const char *path, const char *key)
{
	return guest_stat_in(guest_read(path), key);
}

const char *guest_status(void)
{
	static __thread char words[512];

	snprintf(words, sizeof(words), "%s", guest_read("last_cmd_status"));
	words[strcspn(words, "\n")] = 0;
	return words;
}

void guest_group(const char *name, const char *bank_sets)
{
	char path[256];
	int err;

	snprintf(path, sizeof(path), "groups/%s", name);
	if (mkdir(control_path(path), 0755) && errno != EEXIST)
		guest_die("mkdir %s: %s", path, strerror(errno));
	if (!bank_sets)
		return;
	snprintf(path, sizeof(path), "groups/%s/bank_set", name);
	err = guest_write(path, bank_sets);
	if (err)
		guest_die("%s < %s: %s (%s)", path, bank_sets, strerror(-err),
			  guest_status());
}

int guest_join(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "groups/%s/tasks", name);
	return guest_write(path, "0\n");
}

char *guest_member_memory(const char *group, size_t bytes)
{
	char *p;

	alarm(300); /* a livelock becomes SIGALRM */
	if (guest_join(group))
		_exit(3);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		_exit(4);
	return p;
}

int guest_ungroup(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "groups/%s", name);
	return rmdir(control_path(path)) ? -errno : 0;
}

int guest_take_map(const char *text)
{
	int err, tries;

	for (tries = 0; (err = guest_write("map", text)) && tries < 100; tries++)
		usleep(100000);
	return err;
}

const struct sol_map *guest_map(void)
{
	static struct sol_map map;
	struct sol_err err;
	const char *text;

	if (map.n_cells)
		return &map;
	text = guest_read("map");
	if (sol_map_parse(&map, text, strlen(text),
			  __builtin_ctzl(GUEST_PAGE), &err))
		guest_die("map: line %u: %s", err.line, err.text);
	return &map;
}

int guest_set_of(u64 pfn)
{
	struct sol_frame_color c;

	return sol_map_color(guest_map(), pfn, &c) ? -1 : (int)c.bank_set;
}

int guest_llc_of(u64 pfn)
{
	struct sol_frame_color c;

	return sol_map_color(guest_map(), pfn, &c) ? -1 : (int)c.llc;
}

static int open_proc(pid_t pid, const char *file)
{
	char path[64];
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	else
		snprintf(path, sizeof(path), "/proc/thread-self/%s", file);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		guest_die("%s: %s", path, strerror(errno));
	return fd;
}

static u64 read_u64(int fd, u64 index)
{
	u64 word = 0;

	if (pread(fd, &word, sizeof(word), index * sizeof(word)) !=
	    sizeof(word))
		return 0;
	return word;
}

u64 guest_pfn(pid_t pid, const void *addr)
{
	int fd = open_proc(pid, "pagemap");
	u64 word = read_u64(fd, (unsigned long)addr / GUEST_PAGE);

	close(fd);
	return word & PM_PRESENT ? word & PM_PFN : 0;
}

/* What the audit asks of every page. */
struct asked {
	unsigned long sets[SOL_LONGS(1 << SOL_MAX_BANK_BITS)];
	unsigned long llc[SOL_LONGS(1 << SOL_MAX_LLC_BITS)];
	bool by_bank;
	bool by_llc;
};

static struct asked *ask(const char *sets, const char *llc)
{
	static __thread struct asked a;
	struct sol_err err;

	memset(&a, 0, sizeof(a));
	a.by_bank = sets;
	a.by_llc = llc;
	if (sets && sol_list_parse(sets, strlen(sets),
				   guest_map()->n_bank_sets, a.sets, &err))
		guest_die("list %s: %s", sets, err.text);
	if (llc && sol_list_parse(llc, strlen(llc), guest_map()->n_llc, a.llc,
				  &err))
		guest_die("list %s: %s", llc, err.text);
	return &a;
}

static bool in_colour(const struct asked *a, u64 pfn)
{
	int set = guest_set_of(pfn), llc = guest_llc_of(pfn);

	if (set < 0)
		return false;
	if (a->by_bank && !sol_bit(a->sets, set))
		return false;
	return !a->by_llc || sol_bit(a->llc, llc);
}

static void audit_span(struct guest_audit *sum, int pagemap, int flags,
		       unsigned long start, unsigned long end, bool shared,
		       const char *name, const struct asked *a)
{
	unsigned long at;

	for (at = start; at < end; at += GUEST_PAGE) {
		u64 word = read_u64(pagemap, at / GUEST_PAGE);
		u64 pfn = word & PM_PFN, kind;

		if (word & PM_SWAPPED)
			sum->swapped++;
		if (!(word & PM_PRESENT))
			continue;
		if (shared) {
			sum->shared++;
			continue;
		}
		kind = flags < 0 ? 0 : read_u64(flags, pfn);
		if (kind >> KPF_ZERO_PAGE & 1) {
			sum->zero++;
			continue;
		}
		sum->present++;
		sum->huge += kind >> KPF_THP & 1;
		if (in_colour(a, pfn)) {
			sum->in++;
			continue;
		}
		if (!sum->out++) {
			sum->first_out = at;
			snprintf(sum->where, sizeof(sum->where), "%s", name);
		}
	}
}

/* Mappings whose pages belong to the kernel, not to the process. */
static bool is_kernels(const char *name)
{
	return strstr(name, "[vvar") || strstr(name, "[vsyscall]");
}

struct guest_audit guest_audit(pid_t pid, const char *only, const char *sets,
			       const char *llc)
{
	const struct asked *a = ask(sets, llc);
	struct guest_audit sum = { 0 };
	int pagemap = open_proc(pid, "pagemap");
	int flags = open("/proc/kpageflags", O_RDONLY);
	FILE *maps = fdopen(open_proc(pid, "maps"), "r");
	char line[1024];

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		char perm[8], name[512] = "";

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %511[^\n]", &start,
			   &end, perm, name) < 3)
			continue;
		if (only && !strstr(name, only))
			continue;
		audit_span(&sum, pagemap, flags, start, end,
			   perm[3] == 's' || is_kernels(name), name, a);
	}
	if (maps)
		fclose(maps);
	close(pagemap);
	if (flags >= 0)
		close(flags);
	return sum;
}

struct guest_audit guest_audit_range(const void *addr, size_t bytes,
				     const char *sets, const char *llc)
{
	const struct asked *a = ask(sets, llc);
	struct guest_audit sum = { 0 };
	int pagemap = open_proc(0, "pagemap");
	int flags = open("/proc/kpageflags", O_RDONLY);
	unsigned long start = (unsigned long)addr & ~(GUEST_PAGE - 1);

	audit_span(&sum, pagemap, flags, start, (unsigned long)addr + bytes,
		   false, "range", a);
	close(pagemap);
	if (flags >= 0)
		close(flags);
	return sum;
}

bool guest_check_all_in(const char *name, pid_t pid, const char *sets,
			const char *llc)
{
	struct guest_audit sum = guest_audit(pid, NULL, sets, llc);

	return guest_check(sum.present > 0 && !sum.out && !sum.zero, name,
			   "%ld of %ld pages out of colour (first at %#lx in %s), %ld zero pages",
			   sum.out, sum.present, sum.first_out, sum.where,
			   sum.zero);
}

void *guest_map_anon(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		guest_die("mmap %zu bytes: %s", bytes, strerror(errno));
	return p;
}

void guest_set_kernel(const char *path, const char *value)
{
	int err = set_kernel(path, value);

	if (err)
		guest_die("%s: %s", path, strerror(-err));
}

void guest_touch(void *addr, size_t bytes)
{
	volatile char *p = addr;
	size_t i;

	for (i = 0; i < bytes; i += GUEST_PAGE)
		p[i] = (char)(i / GUEST_PAGE) | 1;
}

/* Interrupts of @cpu (-1: any) that /proc/interrupts describes by @words. */
static long interrupts(const char *words, int cpu)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char line[4096], *at, *end;
	long sum = 0, n;
	int i;

	if (!f)
		guest_die("/proc/interrupts");
	while (fgets(line, sizeof(line), f)) {
		at = strchr(line, ':');
		if (!at || !strstr(line, words))
			continue;
		at++;
		for (i = 0; n = strtol(at, &end, 10), end != at; i++, at = end)
			if (cpu < 0 || i == cpu)
				sum += n;
	}
	fclose(f);
	return sum;
}

/* x86 calls the line CAL, arm64 IPI1; both describe it in the same words. */
long guest_calls(int cpu)
{
	return interrupts("Function call interrupts", cpu);
}

long guest_flushes(int cpu)
{
	return interrupts("TLB shootdowns", cpu);
}

void guest_run_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		guest_die("sched_setaffinity to cpu %d: %s", cpu, strerror(errno));
}
