/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a member of a structure is that no header for modules shows: asked of
 * the kernel's own type information (CONFIG_DEBUG_INFO_BTF). May sleep.
 */
#ifndef SOLOIST_COMPAT_BTF_H
#define SOLOIST_COMPAT_BTF_H

#include <linux/btf.h>
#include <linux/err.h>
#include <linux/string.h>

#include "../hook/hook.h"

typedef struct btf *sol_btf_get_fn(void);
typedef s32 sol_btf_find_fn(const struct btf *btf, const char *name, u8 kind);
typedef const struct btf_type *sol_btf_type_fn(const struct btf *btf, u32 id);
typedef const char *sol_btf_name_fn(const struct btf *btf, u32 offset);
DEFINE_STATIC_CALL_NULL(sol_btf_get, sol_btf_get_fn);
DEFINE_STATIC_CALL_NULL(sol_btf_find, sol_btf_find_fn);
DEFINE_STATIC_CALL_NULL(sol_btf_type, sol_btf_type_fn);
DEFINE_STATIC_CALL_NULL(sol_btf_name, sol_btf_name_fn);

/* Offset in bytes; -ENOENT: no such member, or no type information. */
static int sol_member_at(const char *structure, const char *name)
{
	const struct btf_member *member;
	const struct btf_type *type;
	const struct btf *btf;
	s32 id;
	u32 i;

	if (sol_bind(sol_btf_get, "bpf_get_btf_vmlinux") ||
	    sol_bind(sol_btf_find, "btf_find_by_name_kind") ||
	    sol_bind(sol_btf_type, "btf_type_by_id") ||
	    sol_bind(sol_btf_name, "btf_name_by_offset"))
		return -ENOENT;
	btf = static_call(sol_btf_get)();
	if (IS_ERR_OR_NULL(btf))
		return -ENOENT;
	id = static_call(sol_btf_find)(btf, structure, BTF_KIND_STRUCT);
	type = id > 0 ? static_call(sol_btf_type)(btf, id) : NULL;
	if (!type)
		return -ENOENT;
	for_each_member(i, type, member)
		if (!strcmp(static_call(sol_btf_name)(btf, member->name_off),
			    name))
			return __btf_member_bit_offset(type, member) / 8;
	return -ENOENT;
}

#endif /* SOLOIST_COMPAT_BTF_H */
