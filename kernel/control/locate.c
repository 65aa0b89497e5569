// SPDX-License-Identifier: GPL-2.0
/*
 * firmware/locate: where an address of a memory channel lies in the system's.
 *
 * Linux' library for AMD's Zen (drivers/ras/amd/atl) knows from the data
 * fabric's registers how addresses are dealt out over channels. It goes from
 * an error's place, a channel and an address within it, to the address of the
 * system; what `soloist map detect` wants is the way back, which it solves
 * from many of these. The kernel exports it to modules only, and has it where
 * CONFIG_AMD_ATL is set; it is looked up when it is asked, as ADXL is. What
 * the library has no map for, or the library not there, is an `error` each.
 *
 * Locking: locate_mutex holds the answers, and one caller at a time in the
 * library, which sleeps. Nothing else is taken.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/ras.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../refusal.h"
#include "locate.h"

#define MAX_PLACES	16
/* No socket has more; the number chooses the registers that are read. */
#define MAX_CHANNEL	31u

/*
 * MCA_IPID of an error in channel 0's controller (UMC), as machines print it;
 * the channel's number is in bits 20 to 31 (UMC_CHANNEL_NUM of the library).
 */
#define IPID_UMC	0x9600050f00ull
#define IPID_CHANNEL	20

struct place {
	u32 cpu, channel;
	u64 address;	/* within the channel */
	u64 system;
	bool known;
};

static DEFINE_MUTEX(locate_mutex);
static struct place places[MAX_PLACES];
static unsigned int n_places;

#if IS_ENABLED(CONFIG_AMD_ATL)

static void locate_all(void)
{
	typeof(&amd_convert_umc_mca_addr_to_sys_addr) convert;
	unsigned int i;

	convert = symbol_get(amd_convert_umc_mca_addr_to_sys_addr);
	for (i = 0; convert && i < n_places; i++) {
		struct atl_err err = {
			.addr = places[i].address,
			.ipid = IPID_UMC | (u64)places[i].channel << IPID_CHANNEL,
			.cpu = places[i].cpu,
		};

		places[i].system = convert(&err);
		places[i].known = !IS_ERR_VALUE(places[i].system);
	}
	if (convert)
		symbol_put(amd_convert_umc_mca_addr_to_sys_addr);
}

#else

static void locate_all(void)
{
}

#endif

ssize_t sol_locate_show(char *page)
{
	unsigned int i;
	int n = 0;

	mutex_lock(&locate_mutex);
	for (i = 0; i < n_places; i++) {
		const struct place *one = &places[i];

		n += sysfs_emit_at(page, n, "%u:%u:0x%llx ", one->cpu,
				   one->channel, one->address);
		if (one->known)
			n += sysfs_emit_at(page, n, "0x%llx\n", one->system);
		else
			n += sysfs_emit_at(page, n, "error\n");
	}
	mutex_unlock(&locate_mutex);
	return n;
}

/* "CPU:CHANNEL:ADDRESS" */
static int parse_place(char *word, struct place *place)
{
	char *cpu = strsep(&word, ":"), *channel = strsep(&word, ":");

	if (!channel || !word || kstrtou32(cpu, 0, &place->cpu) ||
	    kstrtou32(channel, 0, &place->channel) ||
	    kstrtou64(word, 0, &place->address))
		return sol_deny(-EINVAL,
				"locate: expected CPU:CHANNEL:ADDRESS, such as 0:3:0x5d000");
	if (place->cpu >= nr_cpu_ids || !cpu_online(place->cpu))
		return sol_deny(-EINVAL, "locate: CPU %u is not online",
				place->cpu);
	if (place->channel > MAX_CHANNEL)
		return sol_deny(-EINVAL, "locate: channel %u: at most %u",
				place->channel, MAX_CHANNEL);
	return 0;
}

/* Places apart by white space, into places[]. */
static int parse_places(char *text)
{
	char *word;
	int err;

	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		if (n_places == MAX_PLACES)
			return sol_deny(-E2BIG,
					"locate: more than %u places in one write",
					MAX_PLACES);
		err = parse_place(word, &places[n_places]);
		if (err)
			return err;
		places[n_places++].known = false;
	}
	if (!n_places)
		return sol_deny(-EINVAL, "locate: expected places");
	return 0;
}

int sol_locate_store(const char *page, size_t count)
{
	char *text;
	int err;

	if (!IS_ENABLED(CONFIG_AMD_ATL))
		return sol_deny(-ENODEV,
				"locate: this kernel was built without AMD's address translation (CONFIG_AMD_ATL)");
	text = kmemdup_nul(page, count, GFP_KERNEL);
	if (!text)
		return sol_deny(-ENOMEM, "locate: no memory");
	mutex_lock(&locate_mutex);
	n_places = 0;
	err = parse_places(text);
	if (err)
		n_places = 0;
	else
		locate_all();
	mutex_unlock(&locate_mutex);
	kfree(text);
	return err;
}
