// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of files: which of them a coloured task has copies of, in its colours.
 *
 * CAMC colours text and data of a program, and a page of the page cache can have
 * no task's colour, so what a task reads of a private mapping is copied. But a
 * task that only reads must see what others write to the file later, and a copy
 * doesn't show that. So a group copies what belongs to programs and libraries,
 * which nobody writes to in place, and what nobody can write to. All else stays
 * in the page cache until the task itself writes to the page, as on Linux. A
 * group may choose otherwise (enum sol_copies).
 *
 * What is executed belongs to a program, and what begins as ELF files do. The
 * mappings beside it don't tell: memory that is locked is read in as it is mapped,
 * before they are there.
 *
 * Locking: none here. The caller is in a fault, which may sleep; this does not.
 */
#include <linux/elf.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/string.h>

#include "../group/group.h"
#include "text.h"

static u8 text_of(u16 id)
{
	u8 text = SOL_COPIES_PROGRAMS;

	sol_with_group(g, id)
		text = READ_ONCE(g->text);
	return text;
}

/* Can nobody write to it? */
static bool is_constant(const struct inode *inode)
{
	return IS_IMMUTABLE(inode) || sb_rdonly(inode->i_sb);
}

/* Is it a program or a library? Who maps one has read its head before. */
static bool is_program(struct address_space *file)
{
	struct folio *folio = filemap_get_folio(file, 0);
	const void *head;
	bool is;

	if (IS_ERR_OR_NULL(folio))
		return false;
	head = kmap_local_folio(folio, 0);
	is = folio_test_uptodate(folio) && !memcmp(head, ELFMAG, SELFMAG);
	kunmap_local(head);
	folio_put(folio);
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
