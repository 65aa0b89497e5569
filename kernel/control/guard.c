// SPDX-License-Identifier: GPL-2.0
/*
 * guard/: bandwidth regulation, and the `bandwidth` file of groups.
 *
 * guard/settings takes any number of `KEY VALUE` lines in one write, which are
 * applied together or not at all. Every possible CPU has a directory, cpuN/: it
 * shows what the CPU has used, and takes a reservation of the CPU's own. A
 * group's reservation is of CPUs too, see docs/reference/guard.md.
 *
 * Locking: configfs', see root.c. A file shows the state of a moment.
 */
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "control.h"
#include "../../core/text/numlist.h"
#include "../guard/guard.h"
#include "../command/status.h"

/* ---- settings ---- */

static const char *const sharing_name[] = {
	[SOL_SHARE_NONE] = "none", [SOL_SHARE_SPARE] = "spare",
	[SOL_SHARE_PROPORTIONAL] = "proportional",
};

static int set_event(struct sol_guard_set *set, int kind, const char *value)
{
	struct sol_event found = { };
	int err = 0;

	if (strlen(value) >= SOL_EVENT_NAME)
		return sol_deny(-EINVAL, "settings: event '%.20s...' is unknown",
				value);
	if (strcmp(value, "none") || kind == SOL_READS)
		err = sol_event_find(value, &found);
	else
		value = "";
	if (err)
		return err;
	strscpy(set->name[kind], value, SOL_EVENT_NAME);
	set->event[kind] = found;
	if (kind == SOL_READS)
		set->rules.line = found.line;
	return 0;
}

static const char *const stop_name[] = { "anywhere", "user" };

static int set_stop(struct sol_guard_set *set, const char *value)
{
	int i = match_string(stop_name, ARRAY_SIZE(stop_name), value);

	if (i < 0)
		return sol_deny(-EINVAL,
				"settings: stop: expected anywhere or user");
	set->hold = i;
	return 0;
}

static int set_sharing(struct sol_guard_set *set, const char *value)
{
	int i = match_string(sharing_name, ARRAY_SIZE(sharing_name), value);

	if (i < 0)
		return sol_deny(-EINVAL,
				"settings: sharing: expected none, spare or proportional");
	set->rules.sharing = i;
	return 0;
}

#define MAX_RATE	10000000000000ull	/* the regulator's, bytes per second */

#define NUMBER(key, member, max)				\
	{ key, offsetof(struct sol_guard_set, member),		\
	  sizeof_field(struct sol_guard_set, member), max }

/* Settings that are numbers: their places and largest values. */
static const struct {
	const char *key;
	size_t at;
	size_t size;
	u64 max;
} numbers[] = {
	NUMBER("period_us", rules.period, 1000000),
	NUMBER("line", rules.line, 4096),
	NUMBER("r_min", rules.r_min[SOL_READS], MAX_RATE),
	NUMBER("write_r_min", rules.r_min[SOL_WRITES], MAX_RATE),
	NUMBER("peak", rules.peak, MAX_RATE),
	NUMBER("q_min", rules.q_min, 1u << 31),
	NUMBER("ewma", rules.ewma, SOL_EWMA_ONE),
	NUMBER("count_kernel", kernel, 1),
	NUMBER("per_task", per_task, 1),
	NUMBER("by_bank", by_bank, 1),
};

static void put_number(void *at, size_t size, u64 n)
{
	switch (size) {
	case 1:
		*(u8 *)at = n;
		break;
	case 2:
		*(u16 *)at = n;
		break;
	case 4:
		*(u32 *)at = n;
		break;
	default:
		*(u64 *)at = n;
	}
}

static int set_number(struct sol_guard_set *set, const char *key,
		      const char *value)
{
	size_t i;
	u64 n;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(key, numbers[i].key))
			break;
	if (i == ARRAY_SIZE(numbers))
		return sol_deny(-EINVAL, "settings: '%.20s' is no setting",
				key);
	if (!isdigit(*value) || kstrtou64(value, 10, &n) ||
	    n > numbers[i].max)
		return sol_deny(-EINVAL,
				"settings: %s '%.20s': expected a number from 0 to %llu",
				key, value, numbers[i].max);
	put_number((void *)set + numbers[i].at, numbers[i].size, n);
	return 0;
}

static int set_one(struct sol_guard_set *set, const char *key,
		   const char *value)
{
	if (!strcmp(key, "event"))
		return set_event(set, SOL_READS, value);
	if (!strcmp(key, "write_event"))
		return set_event(set, SOL_WRITES, value);
	if (!strcmp(key, "sharing"))
		return set_sharing(set, value);
	if (!strcmp(key, "stop"))
		return set_stop(set, value);
	return set_number(set, key, value);
}

static int settings_edit(struct sol_guard_set *set, const void *arg)
{
	char *text = kstrdup(arg, GFP_KERNEL), *rest = text, *line;
	int err = text ? 0 : sol_no_memory("settings"), lines = 0;

	while (!err && (line = strsep(&rest, "\n"))) {
		char *value = strim(line), *key = strsep(&value, " \t");

		if (!*key)
			continue;
		lines++;
		value = value ? skip_spaces(value) : "";
		err = set_one(set, key, value);
	}
	if (!err && !lines)
		err = sol_deny(-EINVAL, "settings: expected KEY VALUE lines");
	kfree(text);
	return err;
}

static ssize_t guard_settings_store(struct config_item *item, const char *page,
				    size_t count)
{
	int err = sol_command_may("settings", page, count);

	if (!err)
		err = sol_guard_edit(settings_edit, page);
	/* In force, with words already. */
	if (err > 0)
		return count;
	return sol_status_done(err, count);
}

static ssize_t guard_settings_show(struct config_item *item, char *page)
{
	struct sol_guard_set s;

	sol_guard_settings(&s);
	return sysfs_emit(page,
		"event %s\nwrite_event %s\nline %u\nperiod_us %u\nr_min %llu\nwrite_r_min %llu\npeak %llu\nq_min %u\newma %u\nsharing %s\ncount_kernel %d\nper_task %d\nby_bank %d\nstop %s\n",
		s.name[SOL_READS],
		*s.name[SOL_WRITES] ? s.name[SOL_WRITES] : "none",
		s.rules.line, s.rules.period, s.rules.r_min[SOL_READS],
		s.rules.r_min[SOL_WRITES], s.rules.peak, s.rules.q_min,
		s.rules.ewma, sharing_name[s.rules.sharing], s.kernel,
		s.per_task, s.by_bank, stop_name[s.hold]);
}

/*
 * The list of @cpus and a newline, from @page[@at] on. Return: where the text ends; -EFBIG:
 * it does not fit. A list that is cut would be another one.
 */
static ssize_t cpus_show(const struct cpumask *cpus, char *page, ssize_t at)
{
	size_t room = SOL_FILE_SIZE - 1 - at;
	size_t len = sol_list_print(cpumask_bits(cpus), nr_cpu_ids, page + at, room);

	if (len >= room)
		return -EFBIG;
	page[at + len] = '\n';
	return at + len + 1;
}

static ssize_t guard_stats_show(struct config_item *item, char *page)
{
	const struct cpumask *ready = &sol_guard.ready;
	ssize_t at = sysfs_emit(page,
		"master %d\nperiods %llu\nlate %llu\nrestarts %llu\nrefused_restarts %llu\nstalled %d\nstalls %llu\ncpus ",
		READ_ONCE(sol_guard.master), sol_guard.periods, sol_guard.late,
		sol_guard.restarts, sol_guard.refused, sol_guard.stalled,
		sol_guard.stalls);
	ssize_t end = cpus_show(ready, page, at);

	return end > 0 ? end :
	       at + sysfs_emit_at(page, at, "%u, too many to list: cpuN/stats says which are ready\n",
				  cpumask_weight(ready));
}

CONFIGFS_ATTR(guard_, settings);
CONFIGFS_ATTR_RO(guard_, stats);

static struct configfs_attribute *guard_attrs[] = {
	&guard_attr_settings,
	&guard_attr_stats,
	NULL,
};

static const struct config_item_type guard_type = {
	.ct_attrs = guard_attrs,
	.ct_owner = THIS_MODULE,
};

/* ---- bandwidth: RATE|weight=N [write=RATE] [reclaim=0|1] [cpus=LIST] ---- */

struct request {
	struct sol_reservation want;
	struct cpumask cpus;
	bool has_cpus;
	bool off;
};

static int rate_word(const char *what, const char *word, u64 *rate)
{
	if (!isdigit(*word) || kstrtou64(word, 10, rate))
		return sol_deny(-EINVAL,
				"bandwidth: %s '%.20s': expected bytes per second",
				what, word);
	if (!*rate)
		return sol_deny(-EINVAL,
				"bandwidth: %s of 0 would stop the CPU for good; `off` takes the reservation away",
				what);
	return 0;
}

static int cpus_word(const char *word, struct request *r)
{
	struct sol_err why;
	int err = sol_list_parse(word, strlen(word), nr_cpu_ids,
				 cpumask_bits(&r->cpus), &why);

	if (err)
		return sol_deny(-EINVAL, "bandwidth: cpus: %s", why.text);
	if (cpumask_empty(&r->cpus))
		return sol_deny(-EINVAL,
				"bandwidth: cpus= needs a list of CPUs from 0 to %u",
				nr_cpu_ids - 1);
	if (!cpumask_subset(&r->cpus, cpu_possible_mask))
		return sol_deny(-EINVAL,
				"bandwidth: cpus '%.20s': there are CPUs %*pbl",
				word, cpumask_pr_args(cpu_possible_mask));
	r->has_cpus = true;
	return 0;
}

static int word_parse(const char *word, bool first, struct request *r)
{
	u64 n;

	if (!strncmp(word, "write=", 6))
		return rate_word("write", word + 6, &r->want.rate[SOL_WRITES]);
	if (!strncmp(word, "cpus=", 5))
		return cpus_word(word + 5, r);
	if (!strcmp(word, "reclaim=0") || !strcmp(word, "reclaim=1")) {
		r->want.reclaim = word[8] == '1';
		return 0;
	}
	if (!strncmp(word, "weight=", 7)) {
		if (kstrtou64(word + 7, 10, &n) || !n || n > SOL_MAX_WEIGHT)
			return sol_deny(-EINVAL,
					"bandwidth: weight '%.20s': expected 1 to %u",
					word + 7, SOL_MAX_WEIGHT);
		r->want.weight = n;
		return 0;
	}
	if (first)
		return rate_word("a rate", word, &r->want.rate[SOL_READS]);
	return sol_deny(-EINVAL,
			"bandwidth: '%.20s' is none of write=RATE, weight=N, reclaim=0, reclaim=1, cpus=LIST",
			word);
}

/* A rate of writes must be given if writes are counted, and only then. */
static int check_kinds(const struct request *r)
{
	struct sol_guard_set set;

	sol_guard_settings(&set);
	if (r->want.weight && (r->want.rate[SOL_READS] ||
			       r->want.rate[SOL_WRITES]))
		return sol_deny(-EINVAL,
				"bandwidth: a rate or a weight, not both");
	if (!r->want.weight && !r->want.rate[SOL_READS])
		return sol_deny(-EINVAL,
				"bandwidth: expected a rate in bytes per second, weight=N, or off");
	if (r->want.rate[SOL_WRITES] && !*set.name[SOL_WRITES])
		return sol_deny(-EINVAL,
				"bandwidth: write=: writes are not counted apart; set write_event and write_r_min first");
	if (!r->want.weight && !r->want.rate[SOL_WRITES] &&
	    *set.name[SOL_WRITES])
		return sol_deny(-EINVAL,
				"bandwidth: writes are counted apart: say write=RATE too");
	return 0;
}

static int request_parse(const char *page, struct request *r)
{
	char *text = kstrdup(page, GFP_KERNEL), *rest = text, *word;
	int err = text ? 0 : sol_no_memory("bandwidth"), n = 0;

	memset(r, 0, sizeof(*r));
	r->want.reclaim = true;
	if (!err && !strcmp(strim(text), "off")) {
		r->off = true;
		kfree(text);
		return 0;
	}
	while (!err && (word = strsep(&rest, " \t\n"))) {
		if (*word)
			err = word_parse(word, !n++, r);
	}
	kfree(text);
	return err ?: check_kinds(r);
}

/* A group's rate is divided among its CPUs. */
static int request_apply(struct sol_group *group, struct request *r)
{
	u32 n = cpumask_weight(&r->cpus);
	int i;

	if (r->off)
		return sol_guard_reserve(group, group ? NULL : &r->cpus, NULL);
	if (group)
		for (i = 0; i < SOL_TRAFFICS; i++)
			r->want.rate[i] = div_u64(r->want.rate[i], n);
	return sol_guard_reserve(group, &r->cpus, &r->want);
}

/* @cpu: the CPU whose file it is; -1: a group's. */
static int bandwidth_store(struct sol_group *group, int cpu, const char *page,
			   size_t count)
{
	int err = sol_command_may("bandwidth", page, count);
	struct request *r;

	if (err)
		return err;
	r = kmalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return sol_no_memory("bandwidth");
	err = request_parse(page, r);
	if (!err && cpu >= 0 && r->has_cpus)
		err = sol_deny(-EINVAL,
			       "bandwidth: cpus= is for groups; this is CPU %d's",
			       cpu);
	if (!err && cpu < 0 && !r->has_cpus && !r->off)
		err = sol_deny(-EINVAL,
			       "bandwidth: say cpus=LIST, the CPUs that the group's tasks run on");
	if (!err && cpu >= 0)
		cpumask_set_cpu(cpu, &r->cpus);
	if (!err)
		err = request_apply(group, r);
	kfree(r);
	return err;
}

static ssize_t want_show(const struct sol_reservation *want, u32 n, char *page)
{
	int at;

	if (want->weight)
		at = sysfs_emit(page, "weight=%u", want->weight);
	else
		at = sysfs_emit(page, "%llu", want->rate[SOL_READS] * n);
	if (want->rate[SOL_WRITES] && !want->weight)
		at += sysfs_emit_at(page, at, " write=%llu",
				    want->rate[SOL_WRITES] * n);
	return at + sysfs_emit_at(page, at, " reclaim=%d", want->reclaim);
}

ssize_t sol_bandwidth_show(const struct sol_group *group, char *page)
{
	struct sol_reservation want;
	struct cpumask *cpus = kmalloc(sizeof(*cpus), GFP_KERNEL);
	ssize_t at;

	if (!cpus)
		return -ENOMEM;	/* no words: any user may read */
	if (sol_guard_reserved(group, cpus, &want)) {
		at = want_show(&want, cpumask_weight(cpus), page);
		at += sysfs_emit_at(page, at, " cpus=");
		at = cpus_show(cpus, page, at);
	} else {
		at = sysfs_emit(page, "off\n");
	}
	kfree(cpus);
	return at;
}

int sol_bandwidth_store(struct sol_group *group, const char *page,
			size_t count)
{
	return bandwidth_store(group, -1, page, count);
}

/* ---- guard/cpuN/ ---- */

struct cpu_dir {
	struct config_group group;
	int cpu;
};

static int to_cpu(struct config_item *item)
{
	return container_of(to_config_group(item), struct cpu_dir, group)->cpu;
}

static ssize_t cpu_bandwidth_show(struct config_item *item, char *page)
{
	struct sol_reservation want;
	char owner[SOL_GROUP_NAME];
	ssize_t at;

	if (!sol_guard_reserved_on(to_cpu(item), owner, sizeof(owner), &want))
		return sysfs_emit(page, "off\n");
	at = want_show(&want, 1, page);
	if (*owner)
		at += sysfs_emit_at(page, at, " group=%s", owner);
	return at + sysfs_emit_at(page, at, "\n");
}

static ssize_t cpu_bandwidth_store(struct config_item *item, const char *page,
				   size_t count)
{
	int err = bandwidth_store(NULL, to_cpu(item), page, count);

	return sol_status_done(err, count);
}

static int kinds_show(char *page, int at, const char *what, const u64 *bytes)
{
	return sysfs_emit_at(page, at, "%s_bytes %llu\n%s_write_bytes %llu\n",
			     what, bytes[SOL_READS], what, bytes[SOL_WRITES]);
}

static ssize_t cpu_stats_show(struct config_item *item, char *page)
{
	struct sol_guard_core_stats s;
	int at;

	sol_guard_core_stats(to_cpu(item), &s);
	at = sysfs_emit(page,
		"regulated %d\nready %d\nstopped %d\nline %u\nreserved_lines %u\nreserved_write_lines %u\nperiods %llu\nstops %llu\nstopped_ns %llu\nunderruns %llu\noverflows %llu\ninterrupts %llu\nnot_counting %llu\n",
		s.regulated, s.ready, s.stopped, s.line,
		s.reserved[SOL_READS], s.reserved[SOL_WRITES], s.rules.periods,
		s.rules.stops, s.stopped_ns, s.rules.underruns, s.overflows,
		s.interrupts, s.failed);
	at += kinds_show(page, at, "used", s.rules.used);
	at += kinds_show(page, at, "donated", s.rules.donated);
	at += kinds_show(page, at, "reclaimed", s.rules.reclaimed);
	at += kinds_show(page, at, "beyond", s.rules.beyond);
	return at;
}

CONFIGFS_ATTR(cpu_, bandwidth);
CONFIGFS_ATTR_RO(cpu_, stats);

static struct configfs_attribute *cpu_attrs[] = {
	&cpu_attr_bandwidth,
	&cpu_attr_stats,
	NULL,
};

static const struct config_item_type cpu_type = {
	.ct_attrs = cpu_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_group guard_dir;
static struct cpu_dir *cpu_dirs;

int sol_control_guard_init(struct config_group *parent)
{
	char name[16];
	int cpu;

	cpu_dirs = kvcalloc(nr_cpu_ids, sizeof(*cpu_dirs), GFP_KERNEL);
	if (!cpu_dirs)
		return -ENOMEM;
	config_group_init_type_name(&guard_dir, "guard", &guard_type);
	for_each_possible_cpu(cpu) {
		snprintf(name, sizeof(name), "cpu%d", cpu);
		cpu_dirs[cpu].cpu = cpu;
		config_group_init_type_name(&cpu_dirs[cpu].group, name,
					    &cpu_type);
		configfs_add_default_group(&cpu_dirs[cpu].group, &guard_dir);
	}
	configfs_add_default_group(&guard_dir, parent);
	return 0;
}

void sol_control_guard_exit(void)
{
	kvfree(cpu_dirs);
}
