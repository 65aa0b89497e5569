// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs the programs that are recorded, each on processors of its own and in
 * its colours, and tells the recording plugin by markers when to begin and end.
 *
 *   record PROGRAM...
 *   PROGRAM = CPUS SETTINGS NAME=VALUE... WORDS WORD...
 *
 * CPUS is a list of processors (0-3,8), SETTINGS and WORDS are counts. With
 * settings the program becomes a group of the module; they are written to the
 * group's files in order. But membind=NODES and interleave=NODES are Linux' own. The first program is the foreground: when it ends, so
 * does the recording, and its status is ours. The others print nothing.
 *
 * A marker is a store of 8 bytes, MARKER | code, at MARKER_OFFSET in a page
 * (crates/soloist-record/src/plan.rs).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS "/sys/kernel/config/soloist/groups"
#define MARKER (0x736f6c6f6973ull << 16)
#define MARKER_OFFSET 0x5c0
enum { SYMBOLS = 1, START = 2, STOP = 3, HERE = 0x80 };

#define MAX_PROGRAMS 64

static char page[4096] __attribute__((aligned(4096)));

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("soloist vm record: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(125);
}

static void tell(uint64_t word)
{
	*(volatile uint64_t *)(page + MARKER_OFFSET) = word;
}

/* The kernel's own description of its types; NULL: it has none. */
static struct btf_header *read_btf(void)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	size_t size = 0, room = 32 << 20;
	char *all = malloc(room);
	ssize_t n = 0;

	while (all && fd >= 0 && (n = read(fd, all + size, room - size)) > 0)
		size += n;
	if (fd >= 0)
		close(fd);
	return size > sizeof(struct btf_header) && !n ? (struct btf_header *)all : NULL;
}

/* Bytes behind a type's description. */
static size_t btf_tail(const struct btf_type *type)
{
	size_t n = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return 12 * n;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return 8 * n;
	default:
		return 0;
	}
}

/* Offset of pid in task_struct; 0: not known. */
static uint64_t pid_offset(void)
{
	const struct btf_header *btf = read_btf();
	const char *types, *end, *names;

	if (!btf || btf->magic != BTF_MAGIC)
		return 0;
	types = (const char *)btf + btf->hdr_len + btf->type_off;
	names = (const char *)btf + btf->hdr_len + btf->str_off;
	for (end = types + btf->type_len; types < end;) {
		const struct btf_type *type = (const void *)types;
		const struct btf_member *member = (const void *)(type + 1);
		int is_task = BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT &&
			      !strcmp(names + type->name_off, "task_struct");

		for (int i = BTF_INFO_VLEN(type->info); is_task && i; i--, member++)
			if (!strcmp(names + member->name_off, "pid"))
				return BTF_MEMBER_BIT_OFFSET(member->offset) / 8;
		types = (const char *)(type + 1) + btf_tail(type);
	}
	return 0;
}

/*
 * Where the kernel notes its current task: without it threads are not told apart.
 * And where waits on futexes begin and end: without it nobody waits for another. And
 * where a task has its number: a later one may lie where one lay that has ended.
 */
static void tell_symbols(void)
{
	static const char *const names[] = { "__switch_to", "__futex_queue",
					     "__futex_wake_mark", "futex_wake_mark" };
	/* Of 6.12 and 6.1 on x86, and of arm64, where sp_el0 is what it says. */
	static const char *const currents[] = { "pcpu_hot", "current_task", "__entry_task" };
	enum { NAMES = sizeof(names) / sizeof(*names) };
	enum { CURRENTS = sizeof(currents) / sizeof(*currents) };
	uint64_t from[NAMES] = { 0 }, to[NAMES], current = 0, addr, pid = pid_offset();
	char line[512], name[256];
	FILE *file;

	memset(to, 0xff, sizeof(to));
	for (int pass = 0; pass < 2; pass++) {
		file = fopen("/proc/kallsyms", "r");
		if (!file)
			fail("cannot read /proc/kallsyms: %s", strerror(errno));
		while (fgets(line, sizeof(line), file)) {
			if (sscanf(line, "%lx %*c %255s", &addr, name) != 2)
				continue;
			for (int i = 0; i < CURRENTS; i++)
				if (!strcmp(name, currents[i]))
					current = addr;
			for (int i = 0; i < NAMES; i++) {
				if (!strcmp(name, names[i]))
					from[i] = addr;
				if (pass && addr > from[i] && addr < to[i])
					to[i] = addr;
			}
		}
		fclose(file);
	}
	if (!from[0] || to[0] == UINT64_MAX)
		fail("/proc/kallsyms has no __switch_to");
	/* Without it all threads would be one. */
	if (!current)
		fail("/proc/kallsyms has no current task: the kernel needs CONFIG_KALLSYMS_ALL");
	tell(MARKER | SYMBOLS);
	tell(from[0]);
	tell(to[0]);
	tell(current);
	for (int i = 1; i < NAMES; i++) {
		tell(from[i]);
		tell(from[i] ? to[i] : 0);
	}
	tell(pid);
}

/* A list such as 0-3,8. */
static cpu_set_t numbers(const char *list)
{
	cpu_set_t set;
	const char *p = list;
	char *end;

	CPU_ZERO(&set);
	while (*p) {
		long from = strtol(p, &end, 10), to = from;

		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		if (end == p || from < 0 || to >= CPU_SETSIZE)
			fail("no list of numbers: '%s'", list);
		for (long cpu = from; cpu <= to; cpu++)
			CPU_SET(cpu, &set);
		p = *end == ',' ? end + 1 : end;
	}
	return set;
}

static void pin(const char *list)
{
	cpu_set_t set = numbers(list);

	if (sched_setaffinity(0, sizeof(set), &set))
		fail("cannot run on processors %s: %s", list, strerror(errno));
}

/* Says on each processor which one it is. */
static void tell_processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	char number[24];

	for (long cpu = 0; cpu < n; cpu++) {
		snprintf(number, sizeof(number), "%ld", cpu);
		pin(number);
		tell(MARKER | (HERE + cpu));
	}
}

static void put(const char *dir, const char *name, const char *value)
{
	char path[512], why[256] = "";
	int fd, n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY);
	if (fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value) &&
	    !close(fd))
		return;
	n = errno;
	fd = open("/sys/kernel/config/soloist/last_cmd_status", O_RDONLY);
	if (fd >= 0)
		(void)!read(fd, why, sizeof(why) - 1);
	fail("%s = %s: %s (%s)", path, value, strerror(n), why);
}

static void color(int number, char **settings, int n)
{
	char dir[128], pid[32];

	snprintf(dir, sizeof(dir), GROUPS "/recorded%d", number);
	if (mkdir(dir, 0755))
		fail("cannot make %s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *value = strchr(settings[i], '=');

		if (!value)
			fail("no setting: '%s'", settings[i]);
		*value++ = 0;
		put(dir, settings[i], value);
	}
	snprintf(pid, sizeof(pid), "%d", getpid());
	put(dir, "tasks", pid);
}

static int count(char ***argv)
{
	char *end;
	long n = **argv ? strtol(**argv, &end, 10) : -1;

	if (n < 0 || *end)
		fail("expected a count, found '%s'", **argv ? **argv : "nothing");
	(*argv)++;
	while (n > 0 && !**argv)
		fail("words are missing");
	return n;
}

/* As numactl does, by a setting such as membind=2; false: it is another one. */
static int place_by_linux(const char *setting)
{
	static const struct {
		const char *name;
		int mode;
	} known[] = { { "membind=", MPOL_BIND }, { "interleave=", MPOL_INTERLEAVE } };

	for (int i = 0; i < 2; i++) {
		size_t n = strlen(known[i].name);
		unsigned long mask = 0;
		cpu_set_t nodes;

		if (strncmp(setting, known[i].name, n))
			continue;
		nodes = numbers(setting + n);
		for (int node = 0; node < 64; node++)
			mask |= (unsigned long)!!CPU_ISSET(node, &nodes) << node;
		if (syscall(SYS_set_mempolicy, known[i].mode, &mask, 65))
			fail("%s: %s", setting, strerror(errno));
		return 1;
	}
	return 0;
}

/* The file that execvp() would run, or @program itself. */
static void find(const char *program, char *path, size_t size)
{
	const char *dir = getenv("PATH");

	while (dir && *dir && !strchr(program, '/')) {
		snprintf(path, size, "%.*s/%s", (int)strcspn(dir, ":"), dir, program);
		if (!access(path, X_OK))
			return;
		dir += strcspn(dir, ":");
		dir += *dir == ':';
	}
	snprintf(path, size, "%s", program);
}

/* What an ELF file is for; -1: it is none. */
static int machine_of(const char *path)
{
	uint16_t head[10];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int whole = fd >= 0 && read(fd, head, sizeof(head)) == sizeof(head);

	if (fd >= 0)
		close(fd);
	return whole && !memcmp(head, "\177ELF", 4) ? head[9] : -1;
}

/* A shell would else read a program of another architecture as a script. */
static void check_machine(const char *program)
{
	struct utsname guest;
	char path[4200];
	int its;

	find(program, path, sizeof(path));
	its = machine_of(path);
	if (its < 0 || its == machine_of("/proc/self/exe"))
		return;
	uname(&guest);
	fprintf(stderr,
		"soloist vm record: %s is no program for this guest (%s): build it for that, or give the Debian package that has it to scripts/userland\n",
		path, guest.machine);
	_exit(126);
}

/* Starts a program, which waits until all are there: @gate closes then. */
static pid_t start(int number, char ***argv, int gate[2])
{
	char *cpus = *(*argv)++;
	int n_settings = count(argv), n_words;
	char **settings = *argv, **words, byte;
	pid_t pid;

	*argv += n_settings;
	n_words = count(argv);
	words = calloc(n_words + 1, sizeof(*words));
	if (!words || !n_words)
		fail("program %d has no words", number);
	memcpy(words, *argv, n_words * sizeof(*words));
	*argv += n_words;

	pid = fork();
	if (pid < 0)
		fail("cannot fork: %s", strerror(errno));
	if (pid)
		return pid;
	close(gate[1]);
	setpgid(0, 0);
	pin(cpus);
	if (n_settings && !place_by_linux(settings[0]))
		color(number, settings, n_settings);
	if (number) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
	}
	(void)!read(gate[0], &byte, 1);
	close(gate[0]);
#ifdef __aarch64__
	/* This libc's memset stores; others clear lines, of which the plugin is not told. */
	setenv("GLIBC_TUNABLES", "glibc.cpu.name=kunpeng920", 0);
#endif
	check_machine(words[0]);
	tell(MARKER | START);
	execvp(words[0], words);
	fprintf(stderr, "soloist vm record: cannot run %s: %s\n", words[0],
		strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/*
 * Whether the background program that ended with @status could not be run, of which we and
 * shells have 125 to 127: what would be recorded without it is not what was asked for.
 */
static int could_not_run(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) >= 125 &&
	       WEXITSTATUS(status) <= 127;
}

static void say_ended(int number, int status)
{
	if (could_not_run(status))
		fprintf(stderr,
			"soloist vm record: background program %d could not be run (status %d): nothing is recorded\n",
			number, WEXITSTATUS(status));
	else
		fprintf(stderr,
			"soloist vm record: background program %d ended with status %d\n",
			number,
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int argc, char **argv)
{
	int gate[2], n = 0, status, other, refused = 0;
	pid_t pids[MAX_PROGRAMS], ended;
	char *first;

	(void)argc;
	first = *++argv;
	if (!first || pipe(gate))
		fail("no programs");
	tell_processors();
	pin(first);
	tell_symbols();
	while (*argv && n < MAX_PROGRAMS) {
		pids[n] = start(n, &argv, gate);
		n++;
	}
	usleep(200000);
	close(gate[1]);
	close(gate[0]);
	while (!refused) {
		ended = wait(&status);
		if (ended < 0)
			fail("cannot wait: %s", strerror(errno));
		if (ended == pids[0])
			break;
		for (int i = 1; i < n; i++)
			if (ended == pids[i] && status) {
				say_ended(i, status);
				refused = could_not_run(status);
			}
	}
	tell(MARKER | STOP);
	for (int i = refused ? 0 : 1; i < n; i++)
		kill(-pids[i], SIGKILL);
	/* One may have been slower to fail than the foreground was to end. */
	while ((ended = wait(&other)) > 0)
		for (int i = 1; i < n; i++)
			if (ended == pids[i] && could_not_run(other) && !refused) {
				say_ended(i, other);
				refused = 1;
				status = other;
			}
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}
