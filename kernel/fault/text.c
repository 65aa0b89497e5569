// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of files: which of them a coloured task copies to its colours.
 *
 * CAMC colours text and data of a program. A page of the page cache can't be in the
 * colours of every task that maps it, so a page of a private mapping is copied when
 * the task reads it. But a task that only reads must see later what others write
 * to the file, and a copy does not show that. So a group copies pages of programs
 * and libraries, which nobody writes in place, and pages that nobody can write.
 * Other pages stay in the page cache until the task itself writes to them, as on
 * Linux. A group may choose otherwise (enum sol_copies).
 *
 * A mapping belongs to a program or library if it is executable, or if its file
 * begins as ELF files do. Other mappings of the same file don't tell: locked memory
 * is read in as it is mapped, before the others exist.
 *
 * Locking: none. The caller is in a fault, which may sleep; this does not.
 */
#include <linux/elf.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/string.h>

#include "../group/group.h"
#include "../hook/hook.h"
#include "text.h"

static u8 text_of(u16 id)
{
	u8 text = SOL_COPIES_PROGRAMS;

	sol_with_group(g, id)
		text = READ_ONCE(g->text);
	return text;
}

/*
 * Can nobody write to @inode? A read-only mount of a file server says nothing of others,
 * who write through the server; one of a disk has this machine alone to write to it.
 */
static bool is_constant(const struct inode *inode)
{
	const struct super_block *sb = inode->i_sb;

	return IS_IMMUTABLE(inode) ||
	       (sb_rdonly(sb) && sb->s_type->fs_flags & FS_REQUIRES_DEV);
}

/* Is @file a program or a library? The loader has read its head already. */
static bool is_program(struct address_space *file)
{
	/* To put the last reference may sleep, and unloading waits for sections only. */
	int users = sol_lists_begin();
	struct folio *folio = filemap_get_folio(file, 0);
	bool is = false;
	const void *head;

	if (!IS_ERR_OR_NULL(folio)) {
		head = kmap_local_folio(folio, 0);
		is = folio_test_uptodate(folio) && !memcmp(head, ELFMAG, SELFMAG);
		kunmap_local(head);
		folio_put(folio);
	}
	sol_lists_end(users);
	return is;
}

bool sol_text_stays(u16 id, struct vm_area_struct *vma)
{
	u8 text;

	if (vma_is_anonymous(vma) || !vma->vm_file)
		return false;
	text = text_of(id);
	if (text == SOL_COPIES_NONE && !(vma->vm_flags & VM_WRITE))
		return true;
	return text != SOL_COPIES_ALL && !(vma->vm_flags & VM_EXEC) &&
	       !is_constant(file_inode(vma->vm_file)) &&
	       !is_program(vma->vm_file->f_mapping);
}
