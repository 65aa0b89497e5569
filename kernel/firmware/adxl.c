// SPDX-License-Identifier: GPL-2.0
/*
 * ADXL: address translation by the firmware of Intel's servers.
 *
 * They have an ACPI method that translates a physical address to socket, controller,
 * channel, rank, bank, row and column (ADXL; drivers/acpi/acpi_adxl.c). The kernel
 * exports it to modules only. Here root can use it, to solve the address map from it
 * (`soloist map detect --from firmware`). Its functions are looked up when they are
 * used, so that the module loads on kernels without it.
 *
 * Locking: decode_mutex guards the answers, and lets one caller at a time into the
 * firmware, whose method is interpreted and sleeps. Nothing nests inside.
 */
#include <linux/types.h>
#include <linux/adxl.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../command/command.h"
#include "../command/status.h"
#include "adxl.h"

#define MAX_ADDRESSES 16

struct translation {
	u64 address;
	int err;
	u64 *values;	/* in the block behind the answers */
};

static DEFINE_MUTEX(decode_mutex);
static struct translation answers[MAX_ADDRESSES];
static unsigned int n_answers, n_components;
static u64 *block;

#if IS_ENABLED(CONFIG_ACPI_ADXL)

static unsigned int component_count(const char *const *names)
{
	unsigned int n = 0;

	while (names && names[n])
		n++;
	return n;
}

/* Names that live as long as the kernel: ADXL is never a module. */
static const char *const *component_names(void)
{
	typeof(&adxl_get_component_names) get;
	const char *const *names = NULL;

	get = symbol_get(adxl_get_component_names);
	if (get) {
		names = get();
		symbol_put(adxl_get_component_names);
	}
	return names;
}

static void translate(void)
{
	typeof(&adxl_decode) decode = symbol_get(adxl_decode);
	unsigned int i;

	for (i = 0; i < n_answers; i++)
		answers[i].err = decode ? decode(answers[i].address,
						 answers[i].values) :
					  -EOPNOTSUPP;
	if (decode)
		symbol_put(adxl_decode);
}

#else

static unsigned int component_count(const char *const *names)
{
	return 0;
}

static const char *const *component_names(void)
{
	return NULL;
}

static void translate(void)
{
}

#endif

ssize_t sol_adxl_components_show(char *page)
{
	const char *const *names = component_names();
	unsigned int i;
	int n = 0;

	for (i = 0; i < component_count(names); i++)
		n += sysfs_emit_at(page, n, "%s\n", names[i]);
	return n;
}

static int show_one(const struct translation *one, char *page, int at)
{
	unsigned int i;
	int n = sysfs_emit_at(page, at, "0x%llx", one->address);

	if (one->err)
		return n + sysfs_emit_at(page, at + n, " error\n");
	for (i = 0; i < n_components; i++) {
		if (one->values[i] == ~0ull)
			n += sysfs_emit_at(page, at + n, " -");
		else
			n += sysfs_emit_at(page, at + n, " 0x%llx",
					   one->values[i]);
	}
	return n + sysfs_emit_at(page, at + n, "\n");
}

ssize_t sol_adxl_show(char *page)
{
	unsigned int i;
	int n = 0;

	mutex_lock(&decode_mutex);
	for (i = 0; i < n_answers; i++)
		n += show_one(&answers[i], page, n);
	mutex_unlock(&decode_mutex);
	return n;
}

/* Longest line: the address, and a space and a number for each component. */
static unsigned int most_addresses(unsigned int components)
{
	return min_t(unsigned int, MAX_ADDRESSES,
		     PAGE_SIZE / (20 + 19 * components));
}

/* Parse addresses with white space between, into answers[]. */
static int parse_addresses(char *text)
{
	unsigned int most = most_addresses(n_components);
	char *word;

	n_answers = 0;
	while ((word = strsep(&text, " \t\n"))) {
		struct translation *one = &answers[n_answers];

		if (!*word)
			continue;
		if (n_answers == most)
			return sol_deny(-E2BIG,
					"decode: more than %u addresses in one write",
					most);
		if (kstrtou64(word, 0, &one->address))
			return sol_deny(-EINVAL,
					"decode: '%.32s': expected an address such as 0x10005d000",
					word);
		one->values = block + n_answers * n_components;
		n_answers++;
	}
	if (!n_answers)
		return sol_deny(-EINVAL, "decode: expected addresses");
	return 0;
}

static int decode_store(const char *page, size_t count)
{
	char *text;
	int err;

	if (!n_components)
		n_components = component_count(component_names());
	if (!n_components)
		return sol_deny(-ENODEV,
				IS_ENABLED(CONFIG_ACPI_ADXL) ?
				"decode: the firmware has no address translation (ACPI ADXL)" :
				"decode: this kernel was built without address translation (CONFIG_ACPI_ADXL)");
	if (!most_addresses(n_components))
		return sol_deny(-E2BIG, "decode: %u components are too many",
				n_components);
	if (!block)
		block = kcalloc(MAX_ADDRESSES * n_components, sizeof(*block),
				GFP_KERNEL);
	text = kmemdup_nul(page, count, GFP_KERNEL);
	if (!block || !text) {
		kfree(text);
		return sol_deny(-ENOMEM, "decode: no memory");
	}
	err = parse_addresses(text);
	kfree(text);
	if (err)
		n_answers = 0;
	else
		translate();
	return err;
}

int sol_adxl_store(const char *page, size_t count)
{
	int err = sol_command_may("decode", page, count);

	if (err)
		return err;
	mutex_lock(&decode_mutex);
	err = decode_store(page, count);
	mutex_unlock(&decode_mutex);
	return err;
}

void sol_adxl_exit(void)
{
	kfree(block);
	block = NULL;
	n_answers = 0;
}
