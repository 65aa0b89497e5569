// SPDX-License-Identifier: GPL-2.0
/*
 * firmware/: the machine's own address translation, for root. `soloist map
 * detect` solves the address map from it.
 *
 *   components, decode  Intel's servers: firmware/adxl.c
 *   locate, umc         AMD's Zen: firmware/zen.c
 *
 * Locking: the room firmware/ has its own.
 */
#include <linux/module.h>

#include "../command/status.h"
#include "../firmware/adxl.h"
#include "../firmware/zen.h"
#include "control.h"

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

const struct config_item_type sol_firmware_type = {
	.ct_attrs = firmware_attrs,
	.ct_owner = THIS_MODULE,
};
