// SPDX-License-Identifier: GPL-2.0
/*
 * The papers' mmap() calls, as they print them: bit 30 of the third argument
 * says that the first one is a command. TintMalloc's have length 0 and concern
 * the calling thread's colours; CAMC's have another length and register the
 * calling user (rule/ then colours the programs that a rule names).
 *
 * Stock kernels ignore bit 30 and refuse a length of 0. A direct hook on
 * ksys_mmap_pgoff, which both 64-bit and 32-bit calls reach, answers in the
 * kernel's place: 0, so mmap() returns NULL, or an errno. Nothing is mapped.
 *
 * Differs from TintMalloc: a colour names its whole bank set, so setting one
 * may set others that share a bank with it. A child has its parent's colours
 * until it sets one itself; then it has only what it set, where TintMalloc's
 * copy of the parent's task_struct would have added to them.
 *
 * Unloading waits by an SRCU of this file, since sol_lists_users may be waited for
 * under sol_group_mutex, which is taken here.
 *
 * Locking: a thread's group is changed only by the thread itself while it is
 * the only one in it; otherwise it gets a copy. sol_group_mutex while a new group gets its
 * maker. All else is in palette/.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include "../compat/trampoline.h"
#include "../palette/colors.h"
#include "../palette/life.h"
#include "../palette/map.h"
#include "../palette/quota.h"
#include "../hook/hook.h"
#include "../group/member.h"
#include "mmap_abi.h"
#include "../rule/rule.h"
#include "../command/status.h"
#include "../uapi/soloist.h"

DEFINE_STATIC_SRCU(calls);

static int mmap_abi;
module_param(mmap_abi, int, 0444);
MODULE_PARM_DESC(mmap_abi,
		 "mmap() calls of CAMC and TintMalloc: 0 off (default), 1 for CAP_SYS_ADMIN, 2 for everyone");

int sol_mmap_abi_level(void)
{
	return mmap_abi;
}

/* ---- TintMalloc ---- */

struct color_call {
	u32 mode;
	u32 color;
	const struct sol_colors *from;	/* of the group the thread was in */
};

static int color_check(const struct color_call *call, bool llc)
{
	const struct sol_map *map = sol_map_in_use();
	u32 n = llc ? map->n_llc : map->n_colors;

	if (call->color < n)
		return 0;
	return sol_deny(-EINVAL, "mmap: %u is not %s colour of %s (0-%u)",
			call->color, llc ? "an LLC" : "a bank", map->name,
			n - 1);
}

static int color_edit(struct sol_colors *colors, const void *arg)
{
	const struct color_call *call = arg;
	const struct sol_map *map = sol_map_in_use();
	bool llc = call->mode == SET_LLC_COLOR || call->mode == CLEAR_LLC_COLOR;
	bool set = call->mode == SET_LLC_COLOR || call->mode == SET_MEM_COLOR;
	unsigned long *bits;
	u32 n, bit;
	int err = color_check(call, llc);

	if (err)
		return err;
	if (call->from)
		sol_colors_copy(map, colors, call->from);
	colors->exclusive = false;
	bits = llc ? colors->llc : colors->sets;
	bit = llc ? call->color : sol_map_color_set(map, call->color);
	n = llc ? map->n_llc : map->n_bank_sets;
	if (set)
		sol_bit_set(bits, bit);
	else
		sol_bit_clear(bits, bit);
	*(llc ? &colors->by_llc : &colors->by_bank) = !bitmap_empty(bits, n);
	return 0;
}

static bool made_for_current(const struct sol_group *group)
{
	return group->maker == current->pid &&
	       group->maker_start == current->start_boottime;
}

static struct sol_group *make_own(void)
{
	struct sol_group *group;
	kuid_t uid;
	int err = sol_quota_make(&uid);

	if (err)
		return ERR_PTR(err);
	group = sol_group_new("mmap", true);
	mutex_lock(&sol_group_mutex);
	if (IS_ERR(group)) {
		sol_quota_unmake(uid);
	} else {
		group->maker_uid = uid;
		group->maker = current->pid;
		group->maker_start = current->start_boottime;
	}
	mutex_unlock(&sol_group_mutex);
	return group;
}

/* A group for this thread alone, with @from's colours and the call's. */
static int color_own(struct sol_group *from, struct color_call *call)
{
	struct sol_group *group = make_own();
	int err;

	if (IS_ERR(group))
		return PTR_ERR(group);
	if (from) {
		call->from = &from->colors;
		group->exhaust = from->exhaust;
	}
	err = sol_group_edit(group, NULL, color_edit, call);
	if (!err)
		err = sol_member_join(group, current);
	sol_group_put(group);
	return err;
}

/* The colours of the calling thread: one more, or one less. */
static int color_call(u32 mode, u32 color)
{
	struct color_call call = { .mode = mode, .color = color };
	bool set = mode == SET_MEM_COLOR || mode == SET_LLC_COLOR;
	struct sol_group *group = sol_member_group(current);
	bool own = group && made_for_current(group);
	int err;

	/* Two references: the thread's and the one just taken. */
	if (own && atomic_read(&group->refs) == 2)
		err = sol_group_edit(group, NULL, color_edit, &call);
	else
		err = color_own(own || !set ? group : NULL, &call);
	if (group)
		sol_group_put(group);
	return err;
}

/* ---- CAMC ---- */

static int user_call(u32 mode, u32 n)
{
	if (mode == COLOR_OFF)
		return sol_rule_register(current_uid(), 0);
	return sol_rule_register(current_uid(), n ? n : 1);
}

/* ---- Both ---- */

static int command(unsigned long addr, unsigned long len)
{
	u32 mode = addr & ~COLOR_NUMBER, number = addr & COLOR_NUMBER;

	if (mmap_abi < 2 && !capable(CAP_SYS_ADMIN))
		return sol_deny(-EPERM,
				"mmap: colours need CAP_SYS_ADMIN; load with mmap_abi=2 to let everyone");
	if (addr > U32_MAX)
		mode = 0;
	switch (mode) {
	case SET_MEM_COLOR:
	case CLEAR_MEM_COLOR:
	case SET_LLC_COLOR:
	case CLEAR_LLC_COLOR:
		if (!len)
			return color_call(mode, number);
		return sol_deny(-EINVAL,
				"mmap: a colour is set with length 0, not %lu",
				len);
	case COLOR_ON:
	case COLOR_OFF:
		if (len)
			return user_call(mode, number);
		return sol_deny(-EINVAL,
				"mmap: a user registers with a length that is not 0");
	default:
		return sol_deny(-EINVAL,
				"mmap: first argument %#lx has no mode of uapi/soloist.h",
				addr);
	}
}

/* In place of ksys_mmap_pgoff(). Return: the result of mmap(). */
unsigned long sol_mmap_command(unsigned long addr, unsigned long len);
unsigned long sol_mmap_command(unsigned long addr, unsigned long len)
{
	int inside = srcu_read_lock(&calls);
	int err = command(addr, len);

	if (!err)
		sol_status_ok();
	srcu_read_unlock(&calls, inside);
	return err;
}

SOL_TRAMPOLINE(sol_mmap_trampoline, sol_mmap_command, SOL_IF_COLOR_ALLOC);

static struct sol_hook mmap_hook[] = {
	SOL_HOOK("ksys_mmap_pgoff", sol_mmap_trampoline),
};

int sol_mmap_abi_init(void)
{
	if (mmap_abi < 0 || mmap_abi > 2) {
		pr_err("mmap_abi=%d: expected 0, 1 or 2\n", mmap_abi);
		return -EINVAL;
	}
	if (mmap_abi == 2)
		pr_warn("mmap_abi=2: any user may have memory in one DRAM bank, the first step of a Rowhammer attack, and use up others' banks; docs/reference/security.md\n");
	return mmap_abi ? sol_hooks_attach_present(mmap_hook, ARRAY_SIZE(mmap_hook)) : 0;
}

void sol_mmap_abi_exit(void)
{
	sol_hooks_detach(mmap_hook, ARRAY_SIZE(mmap_hook));
	synchronize_srcu(&calls);
	synchronize_rcu_tasks();
}
