// SPDX-License-Identifier: GPL-2.0
/* The kernel's own type information; see btf.h. */
#include <linux/btf.h>
#include <linux/err.h>
#include <linux/static_call.h>
#include <linux/string.h>

#include "btf.h"
#include "symbol.h"

typedef struct btf *sol_btf_get_fn(void);
typedef s32 sol_btf_find_fn(const struct btf *btf, const char *name, u8 kind);
typedef const struct btf_type *sol_btf_type_fn(const struct btf *btf, u32 id);
typedef const char *sol_btf_name_fn(const struct btf *btf, u32 offset);
DEFINE_STATIC_CALL_NULL(sol_btf_get, sol_btf_get_fn);
DEFINE_STATIC_CALL_NULL(sol_btf_find, sol_btf_find_fn);
DEFINE_STATIC_CALL_NULL(sol_btf_type, sol_btf_type_fn);
DEFINE_STATIC_CALL_NULL(sol_btf_name, sol_btf_name_fn);

/* NULL: there is none. */
static const struct btf *information(void)
{
	void *get = sol_symbol_find("bpf_get_btf_vmlinux");
	void *find = sol_symbol_find("btf_find_by_name_kind");
	void *type = sol_symbol_find("btf_type_by_id");
	void *name = sol_symbol_find("btf_name_by_offset");
	const struct btf *btf;

	if (!get || !find || !type || !name)
		return NULL;
	static_call_update(sol_btf_get, get);
	static_call_update(sol_btf_find, find);
	static_call_update(sol_btf_type, type);
	static_call_update(sol_btf_name, name);
	btf = static_call(sol_btf_get)();
	return IS_ERR(btf) ? NULL : btf;
}

static const struct btf_type *find(const struct btf *btf, const char *name,
				   u8 kind)
{
	s32 id = btf ? static_call(sol_btf_find)(btf, name, kind) : 0;

	return id > 0 ? static_call(sol_btf_type)(btf, id) : NULL;
}

int sol_btf_member(const char *structure, const char *name)
{
	const struct btf *btf = information();
	const struct btf_type *type = find(btf, structure, BTF_KIND_STRUCT);
	const struct btf_member *member;
	u32 i;

	if (!btf)
		return -ENODATA;
	if (!type)
		return -ENOENT;
	for_each_member(i, type, member)
		if (!strcmp(static_call(sol_btf_name)(btf, member->name_off),
			    name))
			return __btf_member_bit_offset(type, member) / 8;
	return -ENOENT;
}

/* Behind const, volatile and typedef. */
static const struct btf_type *plain(const struct btf *btf, u32 id)
{
	const struct btf_type *type = static_call(sol_btf_type)(btf, id);

	for (;;) {
		switch (type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN) {
		case BTF_KIND_CONST:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_TYPE_TAG:
			type = static_call(sol_btf_type)(btf, type->type);
			break;
		default:
			return type;
		}
	}
}

int sol_btf_takes(const char *function, unsigned int n, const char *structure)
{
	const struct btf *btf = information();
	const struct btf_type *type = find(btf, function, BTF_KIND_FUNC);
	const struct btf_param *param;

	type = type ? static_call(sol_btf_type)(btf, type->type) : NULL;
	if (!type)
		return -ENOENT;
	if (n >= BTF_INFO_VLEN(type->info))
		return 0;
	param = (const struct btf_param *)(type + 1) + n;
	type = plain(btf, param->type);
	if (!type || BTF_INFO_KIND(type->info) != BTF_KIND_PTR)
		return 0;
	type = plain(btf, type->type);
	return type && BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT &&
	       !strcmp(static_call(sol_btf_name)(btf, type->name_off),
		       structure);
}
