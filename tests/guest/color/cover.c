/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The whole address space is in colour: after exec in a group, every present
 * private page (text, data, bss, heap, stack, libraries, vdso) and every page
 * table. Runs as a static and as a dynamic program.
 */
#define _GNU_SOURCE
#include "../lib/guest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SETS "1,3"
#define MiB (1ul << 20)

static char bss[3 * MiB];
static char data[256 * 1024] = { 1 };
static const char rodata[64 * 1024] = { 2 };

static void use_stack(int depth)
{
	volatile char frame[16 * 1024];

	guest_touch((void *)frame, sizeof(frame));
	if (depth)
		use_stack(depth - 1);
}

static long sum_pages(const char *p, size_t bytes)
{
	long sum = 0;
	size_t i;

	for (i = 0; i < bytes; i += GUEST_PAGE)
		sum += ((volatile const char *)p)[i];
	return sum;
}

/* Frames of page tables, in and out of SETS, by the kernel's own flags. */
static void page_table_frames(long *in, long *out)
{
	const struct sol_map *map = guest_map();
	unsigned long sets[SOL_LONGS(1 << SOL_MAX_BANK_BITS)] = { 0 };
	static u64 flags[4096];
	struct sol_err err;
	FILE *f = fopen("/proc/kpageflags", "r");
	u64 pfn = 0;
	size_t n, i;

	if (!f || sol_list_parse(SETS, strlen(SETS), map->n_bank_sets, sets, &err))
		guest_die("kpageflags");
	*in = *out = 0;
	while ((n = fread(flags, 8, 4096, f)) > 0)
		for (i = 0; i < n; i++, pfn++) {
			int set;

			if (!(flags[i] >> 26 & 1)) /* KPF_PGTABLE */
				continue;
			set = guest_set_of(pfn);
			if (set >= 0 && sol_bit(sets, set))
				++*in;
			else
				++*out;
		}
	fclose(f);
}

/* Touch one page in each of @n spans of a page table. */
static void spread(long n)
{
	char *p = mmap(NULL, (n + 1) * GUEST_HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long i;

	if (p == MAP_FAILED)
		guest_die("mmap to spread page tables");
	madvise(p, (n + 1) * GUEST_HUGE, MADV_NOHUGEPAGE);
	for (i = 0; i < n; i++)
		p[i * GUEST_HUGE] = 1;
}

static int inside(void)
{
	long in0, out0, in1, out1, n = 300, want = 8 * MiB / GUEST_PAGE;
	char *heap = malloc(8 * MiB), *brk_old = sbrk(MiB);
	char *ro = guest_map_anon(MiB);
	struct guest_audit sum;

	guest_touch(heap, 8 * MiB);
	guest_touch(brk_old, MiB);
	guest_touch(bss, sizeof(bss));
	guest_touch(data, sizeof(data));
	use_stack(40);
	guest_check(sum_pages(rodata, sizeof(rodata)) >= 2, "cover-rodata",
		    "wrong content");
	guest_check(sum_pages(ro, MiB) == 0, "cover-read-only-anonymous",
		    "a fresh page was not zero");
	guest_check_all_in("cover-all", 0, SETS, NULL);
	sum = guest_audit(0, "[stack]", SETS, NULL);
	guest_check(sum.present >= 400 * 1024 / (long)GUEST_PAGE && !sum.out, "cover-stack",
		    "%ld present, %ld out", sum.present, sum.out);
	sum = guest_audit(0, "[heap]", SETS, NULL);
	guest_check(sum.present > 0 && !sum.out, "cover-heap",
		    "%ld present, %ld out", sum.present, sum.out);
	sum = guest_audit(0, "cover", SETS, NULL);
	guest_check(sum.present > 320 * 1024 / (long)GUEST_PAGE && !sum.out, "cover-program-file",
		    "%ld present, %ld out", sum.present, sum.out);
	sum = guest_audit_range(heap, 8 * MiB, SETS, NULL);
	guest_check(sum.in == want || sum.in == want + 1, "cover-every-heap-page",
		    "%ld in colour of %ld", sum.in, want);

	page_table_frames(&in0, &out0);
	spread(n);
	page_table_frames(&in1, &out1);
	guest_check(in1 - in0 >= n && out1 - out0 <= 8, "cover-page-tables",
		    "%ld new in colour (want %ld), %ld new out", in1 - in0, n,
		    out1 - out0);
	return guest_exit();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return inside();
	guest_group("cover", SETS);
	if (guest_join("cover"))
		guest_die("join: %s", guest_status());
	/* From the first page of exec on. */
	execl("/proc/self/exe", argv[0], "inside", NULL);
	guest_die("exec");
}
