// SPDX-License-Identifier: GPL-2.0
/*
 * The table: functions, symbols and structs of the kernel that the module uses and
 * that the kernel may change.
 *
 * A row is needed, or names what is lost without it. A hook's row says which of
 * its arguments the C side takes for a pointer to which struct: another version
 * may have other arguments. Type information knows only functions that the
 * compiler left as they are; of a specialised copy the C side checks what it is
 * given itself.
 *
 * A feature that the kernel was built without (KSM, swap, ...) has no row: there
 * is nothing to lose.
 *
 * Locking: none. Written by sol_table_check() alone, at load.
 */
#include <linux/bitmap.h>
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "../compat/alloc.h"
#include "../compat/evacuate.h"
#include "../compat/exec.h"
#include "../compat/migrate.h"
#include "../compat/rows.h"
#include "btf.h"
#include "symbol.h"
#include "table.h"

/*
 * A MEMBER's offset is asked for; a LAYOUT's is in a copy that we have of a
 * private struct. Where the compiler left no function for HOOK_IF_THERE, nothing is lost.
 */
enum kind { HOOK, HOOK_IF_THERE, SYMBOL, EVENT, MEMBER, LAYOUT };

struct row {
	enum kind kind;
	bool optional;
	const char *name;
	const char *alt;	/* its name in other versions, or NULL */
	const char *loses;	/* without it */
	const char *takes;	/* argument @at points to such a struct */
	unsigned int at;	/* of a LAYOUT: the offset, in bytes */
	const char *reader;	/* the hook that a LAYOUT is read by, or NULL */
};

/* Member @member of private struct @name, of which @copy is our copy. */
#define LAYOUT_ROW(optional, name, copy, member, loses, reader)		\
	{ LAYOUT, optional, name "." #member, NULL, loses, NULL,	\
	  offsetof(copy, member), reader }

#define GUARD	"CPUs are not stopped anywhere (guard/)"
#define HOLD	"tasks are not held on their way to user space (guard/)"
#define RULES	"no rules"
#define TABLES	"page tables in no colour"
#define MOVED	"pages that the user moves lose their colour"
#define BOUND	"pages that mbind() moves lose their colour"
#define LAZY	"a removed group stays until the CPUs of its tasks run others"
#define DEBUG	"pages are dressed for the kernel's debugging at each hand-out"

static const struct row rows[] = {
	{ SYMBOL, false, "ftrace_enabled", NULL, "no hooks" },

	/* fault/ */
	{ HOOK, false, "handle_mm_fault", NULL, "text and data in no colour",
	  "vm_area_struct", 0 },
	{ HOOK, false, "vma_alloc_folio", "vma_alloc_folio_noprof",
	  "no page in colour", "vm_area_struct", 2 },
	{ HOOK, false, "get_page_from_freelist", NULL,
	  TABLES, "alloc_context", 3 },
	LAYOUT_ROW(false, "alloc_context", struct alloc_context, nodemask,
		   TABLES, NULL),
	LAYOUT_ROW(false, "alloc_context", struct alloc_context,
		   preferred_zoneref, TABLES, NULL),
	{ HOOK, false, "free_unref_page_commit", "free_frozen_page_commit",
	  "no page would come back", "page", 2 },
	{ HOOK, false, "free_one_page", "free_one_page.constprop.0",
	  "some pages would not come back", "page", 1 },
	{ HOOK_IF_THERE, true, "split_large_buddy", NULL,
	  "pages would not come back where free_one_page was copied", "page", 1 },
	{ HOOK, false, "pagefault_out_of_memory", NULL,
	  "a task without colours would fault for ever" },

	/* frames/ */
#ifdef CONFIG_MEMORY_FAILURE
	{ SYMBOL, false, "take_page_off_buddy", NULL, "no frames" },
	{ EVENT, false, "memory_failure_event", NULL,
	  "a group would wait for frames that failed" },
#endif
	{ SYMBOL, false, SOL_BLOCK_SYMBOL, NULL, "no frames" },
	{ SYMBOL, false, "folio_isolate_lru", NULL, "no evacuation" },
	{ SYMBOL, false, "putback_movable_pages", NULL, "no evacuation" },
	{ SYMBOL, false, SOL_DROP_SYMBOL, NULL, "no evacuation" },
	{ SYMBOL, false, "drain_all_pages", NULL, "no evacuation" },
	{ SYMBOL, false, "drain_local_pages", NULL, "no evacuation" },
	{ SYMBOL, false, "lru_add_drain_all", NULL, "no evacuation" },
	{ SYMBOL, true, "post_alloc_hook", NULL,
	  "no loading beside the kernel's debugging of free pages" },
	{ SYMBOL, true, "init_on_free", NULL, DEBUG },
#ifdef CONFIG_PAGE_POISONING
	{ SYMBOL, true, "_page_poisoning_enabled", NULL, DEBUG },
#endif
#ifdef CONFIG_DEBUG_PAGEALLOC
	{ SYMBOL, true, "_debug_pagealloc_enabled", NULL, DEBUG },
#endif
#ifdef CONFIG_PAGE_OWNER
	{ SYMBOL, true, "page_owner_inited", NULL, DEBUG },
#endif

	/* group/ */
	{ EVENT, false, "task_newtask", NULL, "children in no group" },
	{ EVENT, false, "sched_process_fork", NULL, "huge pages in children" },
	{ EVENT, false, "sched_process_exec", NULL, "groups end at exec" },
	{ EVENT, false, "sched_process_exit", NULL, "groups never end" },
	{ EVENT, false, "cgroup_attach_task", NULL, "no groups by cgroup" },
	{ EVENT, false, "cgroup_mkdir", NULL, "no groups by cgroup" },
	{ EVENT, false, "cgroup_rmdir", NULL, "no groups by cgroup" },
	{ SYMBOL, true, "idle_cpu", NULL, LAZY },
	{ SYMBOL, true, "init_mm", NULL, LAZY },
	{ SYMBOL, true, "idle_task", NULL,
	  "a removed group stays until isolated CPUs of its tasks run others" },
	{ SYMBOL, true, "lru_add_drain", NULL,
	  "beside isolated CPUs pages stay that were just faulted" },
	{ HOOK, false, "copy_string_kernel", NULL, RULES, "linux_binprm", 1 },
#ifdef SOL_EXEC_OPENS_LATE
	{ HOOK, false, "security_bprm_creds_for_exec", NULL, RULES,
	  "linux_binprm", 0 },
#endif
	{ SYMBOL, false, "__d_path", NULL, RULES },
	{ SYMBOL, false, "task_work_cancel_match", NULL, RULES },

	/* keep/ */
	{ HOOK, false, "migrate_pages", NULL, "compaction moves pages away" },
	{ HOOK, true, "alloc_migration_target", NULL, MOVED },
	LAYOUT_ROW(true, "migration_target_control", struct sol_target, nid,
		   MOVED, "alloc_migration_target"),
	LAYOUT_ROW(true, "migration_target_control", struct sol_target,
		   gfp_mask, MOVED, "alloc_migration_target"),
	{ HOOK, true, SOL_MPOL_TARGET, NULL, BOUND },
#ifdef SOL_MPOL_STRUCT
	LAYOUT_ROW(true, "migration_mpol", struct sol_mpol_target, pol, BOUND,
		   SOL_MPOL_TARGET),
	LAYOUT_ROW(true, "migration_mpol", struct sol_mpol_target, ilx, BOUND,
		   SOL_MPOL_TARGET),
#endif
	{ EVENT, false, "mm_vmscan_lru_shrink_inactive", NULL,
	  "the OOM killer before swap" },
#ifdef CONFIG_SWAP
	{ HOOK, true, "folio_alloc_swap", NULL,
	  "pages in colour are swapped like any" },
#endif
#ifdef CONFIG_KSM
	{ HOOK, true, "ksm_madvise", NULL, "KSM merges pages in colour",
	  "vm_area_struct", 0 },
#ifdef SOL_KSM_MERGE_ANY
	{ HOOK, true, "ksm_enable_merge_any", NULL,
	  "KSM merges pages in colour", "mm_struct", 0 },
#endif
#endif
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	{ HOOK, true, "alloc_charge_folio", "alloc_charge_hpage",
	  "khugepaged replaces pages in colour", "mm_struct", 1 },
#endif

	/* migrate/ */
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	{ SYMBOL, true, SOL_SPLIT_SYMBOL, NULL,
	  "huge pages are neither evicted nor recoloured" },
#endif
	{ SYMBOL, true, "walk_page_range", NULL, "no recolouring of tasks" },
	{ SYMBOL, true, "try_to_unmap", NULL,
	  "recolouring leaves program text where it is" },
	{ SYMBOL, true, "rmap_walk", NULL,
	  "huge pages stay in a group's colours, and mapped ones if a CPU is isolated" },
	{ SYMBOL, true, "sysctl_compact_unevictable_allowed", NULL,
	  "locked pages are not evicted" },

	/* guard/ */
	{ HOOK, true, "blkcg_maybe_throttle_current", NULL, HOLD },
	{ EVENT, true, "sched_switch", NULL, HOLD },
#ifdef SOL_FAIR_SERVER
	{ SYMBOL, true, "raw_spin_rq_lock_nested", NULL, GUARD },
	{ SYMBOL, true, "update_rq_clock", NULL, GUARD },
	{ SYMBOL, true, "dl_server_stop", NULL, GUARD },
	{ SYMBOL, true, "dl_server_start", NULL, GUARD },
#ifdef SOL_RQ_UNLOCK_INLINE
	{ MEMBER, true, "rq.__lock", NULL, GUARD },
#ifdef CONFIG_SCHED_CORE
	{ MEMBER, true, "rq.core", NULL, GUARD },
	{ MEMBER, true, "rq.core_enabled", NULL, GUARD },
#endif
#else
	{ SYMBOL, true, "raw_spin_rq_unlock", NULL, GUARD },
#endif
#endif

	/* control/ */
	{ HOOK, true, "ksys_mmap_pgoff", NULL, "no mmap() calls of the papers" },
};

static DECLARE_BITMAP(lacking, ARRAY_SIZE(rows));

static char *lack = "";
module_param(lack, charp, 0400);
MODULE_PARM_DESC(lack, "for tests: names, with commas, that this kernel is to lack");

static char *untraced = "";
module_param(untraced, charp, 0400);
MODULE_PARM_DESC(untraced, "for tests: names, with commas, that can't be traced");

/* ---- One row ---- */

static const struct row *row_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	pr_err("'%s' is in no row of the table\n", name);
	return NULL;
}

static bool among(const char *names, const char *name)
{
	const char *at = names;
	size_t n = strlen(name);

	while ((at = strstr(at, name))) {
		if ((at == names || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
		at += n;
	}
	return false;
}

static void *address(const struct row *row)
{
	void *at = sol_symbol_find(row->name);

	return at || !row->alt ? at : sol_symbol_find(row->alt);
}

static int member_at(const struct row *row)
{
	const char *dot = strchr(row->name, '.');
	char structure[32];

	strscpy(structure, row->name,
		min_t(size_t, sizeof(structure), dot - row->name + 1));
	return sol_btf_member(structure, dot + 1);
}

struct sought {
	const char *name;
	struct tracepoint *found;
};

static void match(struct tracepoint *tp, void *priv)
{
	struct sought *sought = priv;

	if (!strcmp(tp->name, sought->name))
		sought->found = tp;
}

static struct tracepoint *event_in_kernel(const char *name)
{
	struct sought sought = { .name = name };

	for_each_kernel_tracepoint(match, &sought);
	return sought.found;
}

/* Without type information the name alone counts. */
static bool takes_as_said(const struct row *row)
{
	return !row->takes ||
	       (sol_btf_takes(row->name, row->at, row->takes) &&
		(!row->alt || sol_btf_takes(row->alt, row->at, row->takes)));
}

/* The compiler or `notrace` may leave a function without ftrace's entry. */
static bool traceable(const struct row *row)
{
	static struct ftrace_ops ops;
	int err;

	if (among(untraced, row->name))
		return false;
	memset(&ops, 0, sizeof(ops));	/* freeing leaves it as it is */
	err = ftrace_set_filter_ip(&ops, (unsigned long)address(row), 0, 1);
	ftrace_free_filter(&ops);
	return !err;
}

/* Without type information our copy counts. */
static const char *fault_of_layout(const struct row *row)
{
	int at = member_at(row);

	if (at == -ENODATA)
		return NULL;
	if (at < 0)
		return "is not there";
	return at == row->at ? NULL : "is in another place";
}

/* What this kernel lacks of @row, in words; NULL: nothing. */
static const char *fault_of(const struct row *row)
{
	bool there;

	if (among(lack, row->name))
		return "is to be lacking (lack=)";
	if (row->kind == LAYOUT)
		return fault_of_layout(row);
	if (row->kind == EVENT)
		there = event_in_kernel(row->name);
	else if (row->kind == MEMBER)
		there = member_at(row) >= 0;
	else
		there = address(row);
	if (!there)
		return row->kind == HOOK_IF_THERE ? NULL : "is not there";
	if (row->kind <= HOOK_IF_THERE && !traceable(row))
		return "can't be traced";
	return takes_as_said(row) ? NULL : "takes other arguments";
}

/* ---- All of them ---- */

int sol_table_check(void)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		const char *fault = fault_of(row);

		if (!fault)
			continue;
		set_bit(i, lacking);
		if (row->reader)
			set_bit(row_of(row->reader) - rows, lacking);
		if (row->optional) {
			pr_warn("this kernel: '%s' %s: %s\n", row->name, fault,
				row->loses);
			continue;
		}
		pr_err("this kernel: '%s' %s, and is needed: %s\n", row->name,
		       fault, row->loses);
		err = -ENOENT;
	}
	return err;
}

size_t sol_table_lacks(char *buf, size_t size)
{
	unsigned int i;
	size_t n = 0;

	for_each_set_bit(i, lacking, ARRAY_SIZE(rows))
		n += scnprintf(buf + n, size - n, "%s%s", n ? "," : "",
			       rows[i].name);
	return n ?: scnprintf(buf, size, "-");
}

static bool lacks(const struct row *row)
{
	return !row || test_bit(row - rows, lacking);
}

void *sol_symbol(const char *name)
{
	const struct row *row = row_of(name);

	return lacks(row) ? NULL : address(row);
}

struct tracepoint *sol_event(const char *name)
{
	return lacks(row_of(name)) ? NULL : event_in_kernel(name);
}

int sol_member_at(const char *name)
{
	const struct row *row = row_of(name);

	return lacks(row) ? -ENOENT : member_at(row);
}
