/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory pressure: frames in the lists count as available and come back when
 * somebody needs them; and before the OOM killer has to kill, coloured pages
 * are swapped after all, and come back in colour with their content.
 */
#include "moves.h"
#include "zram.h"

#define MB (1ul << 20)

static size_t share_of_memory(int percent)
{
	return meminfo("MemAvailable") * MB / 100 * percent /
	       GUEST_PAGE * GUEST_PAGE;
}

#define HUGETLB "/proc/sys/vm/nr_hugepages"

/*
 * Three quarters of memory out of the way, as far as huge pages for it are found: filling
 * what is left takes an emulator long enough.
 */
static void less_memory(void)
{
	char pages[32];

	snprintf(pages, sizeof(pages), "%ld", meminfo("MemAvailable") * 3 / 8);
	set_kernel(HUGETLB, pages);
}

static char every_set[32];

/* All free memory in lists: available as before, and had by who needs it. */
static void lists_are_free(void)
{
	long before = meminfo("MemAvailable"), listed = 0, was, with_lists;
	size_t n = share_of_memory(50) / GUEST_PAGE;
	char *p;

	if (guest_write("lists", "all"))
		guest_die("lists: %s", guest_status());
	do {
		was = listed;
		wait_ms(2500);
		listed = guest_stat("stats", "listed") * GUEST_PAGE / MB;
	} while (listed > was);
	with_lists = meminfo("MemAvailable");
	printf("# of %ld MiB available %ld MiB were listed; then %ld MiB were available\n",
	       before, listed, with_lists);
	guest_check(listed > before / 4, "lists-filled", "%ld MiB", listed);
	/* Of what can be reclaimed the kernel counts the low watermarks as not available. */
	guest_check(with_lists > before * 9 / 10 - kernel_zones("low", -1) / 1024,
		    "lists-count-as-available", "%ld of %ld MiB, low watermarks %lld",
		    with_lists, before, kernel_zones("low", -1) / 1024);
	p = guest_map_anon(n * GUEST_PAGE);
	stamp(p, n, 23);
	guest_check(!stamp_broken(p, n, 23), "lists-given-back", "broken");
	printf("# %ld MiB still listed\n", (long)guest_stat("stats", "listed") * GUEST_PAGE / MB);
	munmap(p, n * GUEST_PAGE);
	if (guest_write("lists", "drain"))
		guest_die("lists: %s", guest_status());
	guest_check(guest_stat("stats", "listed") == 0, "lists-drained",
		    "%lld frames left", guest_stat("stats", "listed"));
}

/* More memory than is available, and not to be swapped. */
static int neighbour(void)
{
	size_t bytes = share_of_memory(100) + 64 * MB;
	char *p = guest_map_anon(bytes);

	printf("# a neighbour locks %zu MiB\n", bytes / MB);
	fflush(stdout);
	return mlock(p, bytes) ? 1 : 0;
}

static int filled[2], squeezed[2];	/* pipes: to main, from main */

static void tell(int pipe[2])
{
	if (write(pipe[1], "", 1) != 1)
		guest_die("pipe: %s", strerror(errno));
}

static void hear(int pipe[2])
{
	char c;

	if (read(pipe[0], &c, 1) != 1)
		guest_die("pipe: %s", strerror(errno));
}

/* Most of the memory, coloured. */
static int coloured(void)
{
	size_t n = share_of_memory(40) / GUEST_PAGE;
	struct guest_audit sum;
	size_t broken;
	char *p;

	if (guest_join("pressure"))
		guest_die("join: %s", guest_status());
	p = guest_map_anon(n * GUEST_PAGE);
	stamp(p, n, 29);
	printf("# %zu MiB coloured\n", n * GUEST_PAGE / MB);
	fflush(stdout);
	tell(filled);
	hear(squeezed);
	sum = guest_audit_range(p, n * GUEST_PAGE, NULL, NULL);
	printf("# %ld MiB of it were swapped\n", sum.swapped * GUEST_PAGE / MB);
	guest_check(sum.swapped > 0, "pressure-swapped-last", "nothing");
	broken = stamp_broken(p, n, 29);
	guest_check(!broken, "pressure-content", "%zu pages broken", broken);
	sum = guest_audit_range(p, n * GUEST_PAGE, every_set, NULL);
	guest_check(!sum.out, "pressure-in-color", "%ld in, %ld out", sum.in,
		    sum.out);
	return guest_exit();
}

/* The neighbour is no child of the coloured task: it would be coloured too. */
static void squeeze(void)
{
	long long kills = kernel_number("/proc/vmstat", "oom_kill");
	pid_t pid;
	int err, status;

	if (pipe(filled) || pipe(squeezed))
		guest_die("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid)
		_exit(coloured());
	hear(filled);
	err = in_child(neighbour);
	guest_check(!err, "pressure-neighbour", "exit %d", err);
	tell(squeezed);
	waitpid(pid, &status, 0);
	guest_check(status == 0, "pressure", "status %#x", status);
	guest_check(kernel_number("/proc/vmstat", "oom_kill") == kills,
		    "pressure-no-kill", "the OOM killer came");
}

int main(void)
{
	set_kernel("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	if (meminfo("MemTotal") > 4096) {
		guest_skip("pressure", "too much memory to fill");
		return 0;
	}
	snprintf(every_set, sizeof(every_set), "0-%u",
		 guest_map()->n_bank_sets - 1);
	less_memory();
	lists_are_free();
	if (!swap_on_zram("1536M", 1536 * MB)) {
		guest_skip("pressure-swap", "no zram in this guest");
		set_kernel(HUGETLB, "0");
		return guest_exit();
	}
	guest_group("pressure", every_set);
	squeeze();
	swapoff("/dev/zram0");
	set_kernel(HUGETLB, "0");
	return guest_exit();
}
