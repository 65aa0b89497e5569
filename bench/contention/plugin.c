// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * QEMU plugin that counts what page faults and frees share with other CPUs.
 *
 * The program in the guest (load.c) says by stores of a magic value where
 * faults and frees begin and end. Between two instructions of user mode lies one
 * event: all that the kernel did for it. The plugin keeps the lines that it
 * reads and writes, the blocks of code that it runs, its instructions, writes
 * to the APIC's ICR (IPIs) and stretches with interrupts off. An event into
 * which an interrupt fell (a write to the APIC's EOI) is dropped. Clearing and
 * copying of pages (`rep stos`, `rep movs`) is not looked at.
 *
 * At the end the lines that more than one CPU touched in events, and at least
 * one wrote, are told, with how often events touched them; so what is shared
 * does not depend on who came when. Each CPU has tables of its own, QEMU calls
 * for one CPU from one thread at a time, so there is no lock.
 *
 * Arguments: out=FILE. None of Debian's packages has QEMU's header.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
typedef uint32_t mem_info;
struct tb;
struct insn;
struct hwaddr;
struct value {
	unsigned int shift;
	uint64_t low, high;
};

enum { NO_REGS, READ_WRITE = 3 };

typedef void (*on_exec)(unsigned int cpu, void *data);
typedef void (*on_mem)(unsigned int cpu, mem_info info, uint64_t at, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct tb *, on_exec, int, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *, on_exec, int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct insn *, on_mem, int, int, void *);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct tb *);
struct insn *qemu_plugin_tb_get_insn(const struct tb *, size_t);
size_t qemu_plugin_insn_data(const struct insn *, void *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct insn *);
bool qemu_plugin_mem_is_store(mem_info);
struct value qemu_plugin_mem_get_value(mem_info);
const struct hwaddr *qemu_plugin_get_hwaddr(mem_info, uint64_t);
bool qemu_plugin_hwaddr_is_io(const struct hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct hwaddr *);

__attribute__((visibility("default"))) int qemu_plugin_version = 4;

#define MAGIC		0x536f6c6f436f756eull	/* plus the phase */
#define SETS		6			/* that load.c ran in one boot; the last a control */
#define PHASES		(1 + 2 * SETS)		/* none; faults and frees of each set */
#define CPUS		256
#define MODULES		0xffffffffc0000000ull	/* code of modules: ours, of what runs */
#define APIC_EOI	0xb0
#define APIC_ICR	0x300

enum { ATOMIC = 1, COPIES = 2, OFF = 4, ON = 8 };

struct code {
	uint64_t pc;
	uint32_t n;		/* of a block: instructions; of one: its place */
	uint32_t flags;
};

/* ---- a table from a number to some counts ---- */

struct entry {
	uint64_t key, virt;
	uint64_t who[2][PHASES];	/* reads, writes it */
	uint32_t n[3][PHASES];		/* reads, writes, atomic; or calls, longest */
	uint32_t event[2];
	uint16_t cpus[2][SETS];		/* of the sum: that touch it, that write it */
};

struct table {
	struct entry *at;
	size_t size, used;
};

static struct entry *look(struct table *t, uint64_t key)
{
	size_t i;

	if (t->used * 2 >= t->size) {
		struct table old = *t;

		t->size = old.size ? old.size * 2 : 1024;
		t->at = calloc(t->size, sizeof(*t->at));
		t->used = 0;
		for (i = 0; i < old.size; i++)
			if (old.at[i].key)
				*look(t, old.at[i].key) = old.at[i];
		free(old.at);
	}
	i = (key * 0x9e3779b97f4a7c15ull >> 20) & (t->size - 1);
	while (t->at[i].key && t->at[i].key != key)
		i = (i + 1) & (t->size - 1);
	t->used += !t->at[i].key;
	t->at[i].key = key;
	return &t->at[i];
}

/* ---- a CPU ---- */

struct access {
	uint64_t line, virt, pc;
	bool write, atomic;
};

struct stretch {
	uint64_t pc;
	uint32_t n;
};

#define MOST	(1u << 16)	/* of an event */

static struct cpu {
	int phase;
	uint64_t instructions;
	bool kernel, dropped;
	uint32_t event;
	/* This event. */
	uint64_t from;
	uint32_t accesses, blocks, stretches, ipis;
	struct access *access;
	uint64_t *block;
	struct stretch stretch[1024];
	bool off;
	uint64_t off_from, off_pc;
	/* All of them. */
	uint64_t events[PHASES], all_ipis[PHASES], lost[PHASES];
	uint32_t *cost[PHASES];
	size_t costs[PHASES];
	struct table lines, calls, offs;
} cpus[CPUS];

static const char *out;

static void begin(struct cpu *c)
{
	c->from = c->instructions;
	c->accesses = c->blocks = c->stretches = c->ipis = 0;
	c->kernel = c->dropped = false;
}

static void add_lines(struct cpu *c)
{
	for (uint32_t i = 0; i < c->accesses; i++) {
		const struct access *a = &c->access[i];
		struct entry *e = look(&c->lines, a->line + 1);

		e->virt = a->virt;
		e->who[a->write][c->phase] = a->pc;
		if (a->atomic)
			e->n[2][c->phase]++;
		/* A line counts once for an event. */
		if (e->event[a->write] == c->event)
			continue;
		e->event[a->write] = c->event;
		e->n[a->write][c->phase]++;
	}
}

static void commit(struct cpu *c)
{
	int p = c->phase;

	if (c->dropped) {
		c->lost[p]++;
		return;
	}
	c->event++;
	add_lines(c);
	for (uint32_t i = 0; i < c->blocks; i++)
		look(&c->calls, c->block[i])->n[0][p]++;
	for (uint32_t i = 0; i < c->stretches; i++) {
		struct entry *e = look(&c->offs, c->stretch[i].pc);

		e->n[0][p]++;
		if (c->stretch[i].n > e->n[1][p])
			e->n[1][p] = c->stretch[i].n;
	}
	c->all_ipis[p] += c->ipis;
	if (!(c->costs[p] & (c->costs[p] + 1)))
		c->cost[p] = realloc(c->cost[p], (c->costs[p] * 2 + 2) * sizeof(uint32_t));
	c->cost[p][c->costs[p]++] = c->instructions - c->from;
	c->events[p]++;
}

/* ---- what QEMU tells ---- */

static void block_runs(unsigned int cpu, void *data)
{
	struct cpu *c = &cpus[cpu];
	const struct code *code = data;

	if (!c->phase)
		return;
	if (!(code->pc >> 63)) {
		if (c->kernel)
			commit(c);
		c->off = false;
		begin(c);
	} else {
		c->kernel = true;
		/* A stretch is ours if we run in it. */
		if (c->off && code->pc >= MODULES && c->off_pc < MODULES)
			c->off_pc = code->pc;
		if (c->blocks < MOST && (!c->blocks || c->block[c->blocks - 1] != code->pc))
			c->block[c->blocks++] = code->pc;
	}
	c->instructions += code->n;
}

static void flag_changes(unsigned int cpu, void *data)
{
	struct cpu *c = &cpus[cpu];
	const struct code *code = data;
	uint64_t at;

	if (!c->phase)
		return;
	at = c->instructions - code->n;	/* n: from here to the block's end */
	if (code->flags & OFF) {
		if (!c->off) {
			c->off = true;
			c->off_from = at;
			c->off_pc = code->pc;
		}
		return;
	}
	if (c->off && c->stretches < 1024)
		c->stretch[c->stretches++] = (struct stretch){
			c->off_pc, at - c->off_from,
		};
	c->off = false;
}

static void marked(unsigned int cpu, uint64_t value)
{
	struct cpu *c = &cpus[cpu];

	if (value - MAGIC >= PHASES)
		return;
	if (!c->access) {
		c->access = malloc(MOST * sizeof(*c->access));
		c->block = malloc(MOST * sizeof(*c->block));
	}
	c->phase = value - MAGIC;
	begin(c);
	c->off = false;
}

static void accessed(unsigned int cpu, mem_info info, uint64_t virt, void *data)
{
	struct cpu *c = &cpus[cpu];
	const struct code *code = data;
	bool write = qemu_plugin_mem_is_store(info);
	const struct hwaddr *hw;
	uint64_t phys;

	if (!(code->pc >> 63)) {
		if (write)
			marked(cpu, qemu_plugin_mem_get_value(info).low);
		return;
	}
	if (!c->phase || code->flags & COPIES)
		return;
	hw = qemu_plugin_get_hwaddr(info, virt);
	if (!hw)
		return;
	phys = qemu_plugin_hwaddr_phys_addr(hw);
	if (qemu_plugin_hwaddr_is_io(hw)) {
		if (write && (virt & 0xfff) == APIC_EOI)
			c->dropped = true;
		if (write && (virt & 0xfff) == APIC_ICR)
			c->ipis++;
		return;
	}
	if (c->accesses < MOST)
		c->access[c->accesses++] = (struct access){
			phys >> 6, virt, code->pc, write, code->flags & ATOMIC,
		};
}

static uint32_t flags_of(const uint8_t *b, size_t n)
{
	bool lock = false, rep = false;
	size_t i;

	for (i = 0; i < n; i++) {
		if (b[i] == 0xf0)
			lock = true;
		else if (b[i] == 0xf3 || b[i] == 0xf2)
			rep = true;
		else if (!memchr("\x2e\x36\x3e\x26\x64\x65\x66\x67", b[i], 8) &&
			 (b[i] & 0xf0) != 0x40)
			break;
	}
	if (i == n)
		return 0;
	if (rep && (b[i] == 0xaa || b[i] == 0xab || b[i] == 0xa4 || b[i] == 0xa5))
		return COPIES;
	if (b[i] == 0xfa)
		return OFF;
	/* sti, popf, iret, sysret */
	if (b[i] == 0xfb || b[i] == 0x9d || b[i] == 0xcf ||
	    (b[i] == 0x0f && i + 1 < n && b[i + 1] == 0x07))
		return ON;
	return lock || b[i] == 0x86 || b[i] == 0x87 ? ATOMIC : 0;
}

static void translated(plugin_id id, struct tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;
	struct code *code = calloc(n + 1, sizeof(*code));

	(void)id;
	code[n].pc = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	code[n].n = n;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_runs, NO_REGS, &code[n]);
	for (i = 0; i < n; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16];

		code[i].pc = qemu_plugin_insn_vaddr(insn);
		code[i].n = n - i;
		code[i].flags = flags_of(bytes, qemu_plugin_insn_data(insn, bytes, sizeof(bytes)));
		if (code[i].pc >> 63 && code[i].flags & (OFF | ON))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, flag_changes, NO_REGS,
							       &code[i]);
		qemu_plugin_register_vcpu_mem_cb(insn, accessed, NO_REGS, READ_WRITE, &code[i]);
	}
}

/* ---- the end ---- */

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* `phase PHASE EVENTS DROPPED IPIS MEAN MEDIAN`, the last two in instructions */
static void tell_costs(FILE *f)
{
	for (int p = 1; p < PHASES; p++) {
		uint64_t events = 0, ipis = 0, lost = 0, sum = 0;
		size_t n = 0, i;
		uint32_t *all;

		for (int c = 0; c < CPUS; c++) {
			events += cpus[c].events[p];
			ipis += cpus[c].all_ipis[p];
			lost += cpus[c].lost[p];
		}
		all = malloc((events + 1) * sizeof(*all));
		for (int c = 0; c < CPUS; c++) {
			for (i = 0; i < cpus[c].costs[p]; i++)
				sum += cpus[c].cost[p][i];
			memcpy(all + n, cpus[c].cost[p], cpus[c].costs[p] * sizeof(*all));
			n += cpus[c].costs[p];
		}
		qsort(all, n, sizeof(*all), ascending);
		fprintf(f, "phase %d %llu %llu %llu %.1f %u\n", p,
			(unsigned long long)events, (unsigned long long)lost,
			(unsigned long long)ipis, n ? (double)sum / n : 0.0,
			n ? all[n / 2] : 0);
		free(all);
	}
}

static void add(struct entry *s, const struct entry *e, bool longest)
{
	s->virt = e->virt;
	for (int p = 1; p < PHASES; p++) {
		int set = (p - 1) / 2;

		s->n[0][p] += e->n[0][p];
		s->n[2][p] += e->n[2][p];
		if (!longest)
			s->n[1][p] += e->n[1][p];
		else if (e->n[1][p] > s->n[1][p])
			s->n[1][p] = e->n[1][p];
		s->who[0][p] = e->who[0][p] ?: s->who[0][p];
		s->who[1][p] = e->who[1][p] ?: s->who[1][p];
		if (!(p & 1))
			continue;
		s->cpus[0][set] += e->n[0][p] || e->n[1][p] || e->n[0][p + 1] || e->n[1][p + 1];
		s->cpus[1][set] += e->n[1][p] || e->n[1][p + 1];
	}
}

static struct table sum_of(size_t offset, bool longest)
{
	struct table sum = { 0 };

	for (int c = 0; c < CPUS; c++) {
		const struct table *t = (void *)((char *)&cpus[c] + offset);

		for (size_t i = 0; i < t->size; i++)
			if (t->at[i].key)
				add(look(&sum, t->at[i].key), &t->at[i], longest);
	}
	return sum;
}

/* `line PHASE PHYSICAL VIRTUAL CPUS WRITERS READS WRITES ATOMIC READER WRITER` */
static void tell_lines(FILE *f, const struct entry *e)
{
	for (int p = 1; p < PHASES; p++) {
		int set = (p - 1) / 2;

		if (e->cpus[0][set] < 2 || !e->cpus[1][set] || !(e->n[0][p] + e->n[1][p]))
			continue;
		fprintf(f, "line %d %llx %llx %u %u %u %u %u %llx %llx\n", p,
			(unsigned long long)(e->key - 1) << 6, (unsigned long long)e->virt,
			e->cpus[0][set], e->cpus[1][set], e->n[0][p], e->n[1][p], e->n[2][p],
			(unsigned long long)e->who[0][p], (unsigned long long)e->who[1][p]);
	}
}

static void ended(plugin_id id, void *data)
{
	FILE *f = fopen(out, "w");
	struct table t;

	(void)id;
	(void)data;
	if (!f)
		return;
	tell_costs(f);
	t = sum_of(offsetof(struct cpu, lines), false);
	for (size_t i = 0; i < t.size; i++)
		if (t.at[i].key)
			tell_lines(f, &t.at[i]);
	/* `run PHASE PC TIMES`, `off PHASE PC TIMES LONGEST` */
	t = sum_of(offsetof(struct cpu, calls), false);
	for (size_t i = 0; i < t.size; i++)
		for (int p = 1; p < PHASES && t.at[i].key; p++)
			if (t.at[i].n[0][p])
				fprintf(f, "run %d %llx %u\n", p,
					(unsigned long long)t.at[i].key, t.at[i].n[0][p]);
	t = sum_of(offsetof(struct cpu, offs), true);
	for (size_t i = 0; i < t.size; i++)
		for (int p = 1; p < PHASES && t.at[i].key; p++)
			if (t.at[i].n[0][p])
				fprintf(f, "off %d %llx %u %u\n", p,
					(unsigned long long)t.at[i].key, t.at[i].n[0][p],
					t.at[i].n[1][p]);
	fclose(f);
}

__attribute__((visibility("default")))
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	if (!out)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
