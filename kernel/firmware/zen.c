// SPDX-License-Identifier: GPL-2.0
/*
 * Zen: answers of the channels of AMD's processors about addresses.
 *
 * locate: where an address of a channel lies in the system. Linux' library
 * (drivers/ras/amd/atl) knows from registers of the data fabric how addresses are dealt
 * out over channels. It converts the place of an error, a channel and an address in it,
 * to an address of the system. `soloist map detect` needs the reverse, which it solves
 * from many of these. The kernel has the library if CONFIG_AMD_ATL is set.
 *
 * umc: a register of a channel's memory controller, which says which bits of that
 * address are rank, bank and row. They are on the system management network. Nothing
 * else of that network is read: reading some of its registers has effects.
 *
 * The kernel exports both to modules only; they are looked up when they are used, as
 * ADXL is. An answer that is not known is an `error`.
 *
 * Locking: each question has a mutex for its answers, which also lets one caller at a
 * time into the library and to the network; both sleep. Nothing nests inside.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/ras.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../compat/smn.h"
#include "../command/command.h"
#include "../command/status.h"
#include "zen.h"

#define MAX_PLACES	16
/* No socket has more; the number chooses the registers that are read. */
#define MAX_CHANNEL	31u

/*
 * MCA_IPID of an error in channel 0's controller (UMC), as machines print it;
 * the channel's number is in bits 20 to 31 (UMC_CHANNEL_NUM of the library).
 */
#define IPID_UMC	0x9600050f00ull
#define IPID_CHANNEL	20

/* Registers of channel 0's controller on the network, and the next channel's. */
#define UMC_FIRST	0x50000u
#define UMC_CHANNEL	20
#define UMC_REGISTERS	0x1000u
/* A bus answers so if there is no register. */
#define NOTHING		(~0u)

struct place {
	u32 of;		/* a CPU, or AMD's number of a node */
	u32 channel;
	u64 at;		/* an address within the channel, or a register */
	u64 told;
	bool known;
};

struct sol_question {
	const char *name, *form;
	int (*check)(const struct place *place);
	void (*ask)(struct sol_question *question);	/* NULL: the kernel ... */
	const char *lacks;				/* ... lacks this */
	struct mutex mutex;
	struct place places[MAX_PLACES];
	unsigned int n;
};

#if IS_ENABLED(CONFIG_AMD_ATL)

static void locate_all(struct sol_question *question)
{
	typeof(&amd_convert_umc_mca_addr_to_sys_addr) convert;
	unsigned int i;

	convert = symbol_get(amd_convert_umc_mca_addr_to_sys_addr);
	for (i = 0; convert && i < question->n; i++) {
		struct place *one = &question->places[i];
		struct atl_err err = {
			.addr = one->at,
			.ipid = IPID_UMC | (u64)one->channel << IPID_CHANNEL,
			.cpu = one->of,
		};

		one->told = convert(&err);
		one->known = !IS_ERR_VALUE(one->told);
	}
	if (convert)
		symbol_put(amd_convert_umc_mca_addr_to_sys_addr);
}

#else
#define locate_all NULL
#endif

static int check_locate(const struct place *place)
{
	if (place->of >= nr_cpu_ids || !cpu_online(place->of))
		return sol_deny(-EINVAL, "locate: CPU %u is not online",
				place->of);
	return 0;
}

#if SOL_HAS_SMN

static void read_all(struct sol_question *question)
{
	typeof(&amd_smn_read) read = symbol_get(amd_smn_read);
	unsigned int i;

	for (i = 0; read && i < question->n; i++) {
		struct place *one = &question->places[i];
		u32 value = NOTHING;

		one->known = !read(one->of,
				   UMC_FIRST + (one->channel << UMC_CHANNEL) +
				   (u32)one->at, &value) && value != NOTHING;
		one->told = value;
	}
	if (read)
		symbol_put(amd_smn_read);
}

#else
#define read_all NULL
#endif

static int check_umc(const struct place *place)
{
	if (place->of > U16_MAX)
		return sol_deny(-EINVAL, "umc: node %u: at most %u", place->of,
				U16_MAX);
	if (place->at >= UMC_REGISTERS || place->at % sizeof(u32))
		return sol_deny(-EINVAL,
				"umc: register 0x%llx: expected a multiple of 4 below 0x%x",
				place->at, UMC_REGISTERS);
	return 0;
}

struct sol_question sol_locate = {
	.name = "locate",
	.form = "CPU:CHANNEL:ADDRESS, such as 0:3:0x5d000",
	.check = check_locate,
	.ask = locate_all,
	.lacks = "AMD's address translation (CONFIG_AMD_ATL)",
	.mutex = __MUTEX_INITIALIZER(sol_locate.mutex),
};

struct sol_question sol_umc = {
	.name = "umc",
	.form = "NODE:CHANNEL:REGISTER, such as 0:3:0x50",
	.check = check_umc,
	.ask = read_all,
	.lacks = "AMD's system management network (CONFIG_AMD_NB)",
	.mutex = __MUTEX_INITIALIZER(sol_umc.mutex),
};

ssize_t sol_question_show(struct sol_question *question, char *page)
{
	unsigned int i;
	int n = 0;

	mutex_lock(&question->mutex);
	for (i = 0; i < question->n; i++) {
		const struct place *one = &question->places[i];

		n += sysfs_emit_at(page, n, "%u:%u:0x%llx ", one->of,
				   one->channel, one->at);
		if (one->known)
			n += sysfs_emit_at(page, n, "0x%llx\n", one->told);
		else
			n += sysfs_emit_at(page, n, "error\n");
	}
	mutex_unlock(&question->mutex);
	return n;
}

/* Three numbers with colons between. */
static int parse_place(const struct sol_question *question, char *word,
		       struct place *place)
{
	char *of = strsep(&word, ":"), *channel = strsep(&word, ":");

	if (!channel || !word || kstrtou32(of, 0, &place->of) ||
	    kstrtou32(channel, 0, &place->channel) ||
	    kstrtou64(word, 0, &place->at))
		return sol_deny(-EINVAL, "%s: expected %s", question->name,
				question->form);
	if (place->channel > MAX_CHANNEL)
		return sol_deny(-EINVAL, "%s: channel %u: at most %u",
				question->name, place->channel, MAX_CHANNEL);
	place->known = false;
	return question->check(place);
}

/* Parse places with white space between. */
static int parse_places(struct sol_question *question, char *text)
{
	char *word;
	int err;

	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		if (question->n == MAX_PLACES)
			return sol_deny(-E2BIG,
					"%s: more than %u places in one write",
					question->name, MAX_PLACES);
		err = parse_place(question, word,
				  &question->places[question->n]);
		if (err)
			return err;
		question->n++;
	}
	if (!question->n)
		return sol_deny(-EINVAL, "%s: expected places", question->name);
	return 0;
}

int sol_question_store(struct sol_question *question, const char *page,
		       size_t count)
{
	char *text;
	int err = sol_command_may(question->name, page, count);

	if (err)
		return err;
	if (!question->ask)
		return sol_deny(-ENODEV, "%s: this kernel was built without %s",
				question->name, question->lacks);
	text = kmemdup_nul(page, count, GFP_KERNEL);
	if (!text)
		return sol_deny(-ENOMEM, "%s: no memory", question->name);
	mutex_lock(&question->mutex);
	question->n = 0;
	err = parse_places(question, text);
	if (err)
		question->n = 0;
	else
		question->ask(question);
	mutex_unlock(&question->mutex);
	kfree(text);
	return err;
}
