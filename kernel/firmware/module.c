// SPDX-License-Identifier: GPL-2.0
/*
 * soloist-firmware.ko: the machine's own address translation, for root, in
 * /sys/kernel/config/soloist/firmware. `soloist map detect` solves the address map from
 * it, and then nobody needs it any more: it is a module of its own, which detection loads
 * and takes away, so that no code that reads registers stays in a machine at work.
 *
 *   components, decode  Intel's servers: adxl.c
 *   locate, umc         AMD's Zen: zen.c
 *
 * Locking: adxl.c and zen.c have their own.
 */
#include <linux/module.h>

#include "../command/status.h"
#include "../control/control.h"
#include "adxl.h"
#include "zen.h"

static ssize_t firmware_components_show(struct config_item *item, char *page)
{
	return sol_adxl_components_show(page);
}

static ssize_t firmware_decode_show(struct config_item *item, char *page)
{
	return sol_adxl_show(page);
}

static ssize_t firmware_decode_store(struct config_item *item,
				     const char *page, size_t count)
{
	return sol_status_done(sol_adxl_store(page, count), count);
}

static ssize_t firmware_locate_show(struct config_item *item, char *page)
{
	return sol_question_show(&sol_locate, page);
}

static ssize_t firmware_locate_store(struct config_item *item,
				     const char *page, size_t count)
{
	return sol_status_done(sol_question_store(&sol_locate, page, count),
			       count);
}

static ssize_t firmware_umc_show(struct config_item *item, char *page)
{
	return sol_question_show(&sol_umc, page);
}

static ssize_t firmware_umc_store(struct config_item *item, const char *page,
				  size_t count)
{
	return sol_status_done(sol_question_store(&sol_umc, page, count),
			       count);
}

CONFIGFS_ATTR_RO(firmware_, components);
SOL_ATTR_SECRET(firmware_, decode);
SOL_ATTR_SECRET(firmware_, locate);
SOL_ATTR_SECRET(firmware_, umc);

static struct configfs_attribute *firmware_attrs[] = {
	&firmware_attr_components,
	&firmware_attr_decode,
	&firmware_attr_locate,
	&firmware_attr_umc,
	NULL,
};

static const struct config_item_type firmware_type = {
	.ct_attrs = firmware_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_group firmware_dir;

static int __init firmware_init(void)
{
	config_group_init_type_name(&firmware_dir, "firmware", &firmware_type);
	return sol_control_add(&firmware_dir);
}

static void __exit firmware_exit(void)
{
	sol_control_remove(&firmware_dir);
	sol_adxl_exit();
}

module_init(firmware_init);
module_exit(firmware_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("What firmware and registers say of addresses, for soloist map detect");
