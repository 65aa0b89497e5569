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
 * begins as ELF files do. Other mappings of the same file don't tell alone: locked memory
 * is read in as it is mapped, before the others exist. They tell where the head of the
 * file is not in memory any more: a task has a copy of it, so that on a full machine
 * Linux soon takes the page.
 *
 * Locking: none. The caller is in a fault, which may sleep; this does not. Under the lock of
 * its mapping alone the others may go at any time: RCU keeps their structures.
 */
#include <linux/elf.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "../group/group.h"
#include "../hook/hook.h"
#include "text.h"

/* Mappings on each side that are looked at: a program has some five. */
#define NEAR	6

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

/*
 * Does @file begin as ELF files do? The loader has read its head already. Return:
 * -ENOENT: that is not in memory any more.
 */
static int begins_as_elf(struct address_space *file)
{
	/* To put the last reference may sleep, and unloading waits for sections only. */
	int users = sol_lists_begin(), is = -ENOENT;
	struct folio *folio = filemap_get_folio(file, 0);
	const void *head;

	if (!IS_ERR_OR_NULL(folio)) {
		if (folio_test_uptodate(folio)) {
			head = kmap_local_folio(folio, 0);
			is = !memcmp(head, ELFMAG, SELFMAG);
			kunmap_local(head);
		}
		folio_put(folio);
	}
	sol_lists_end(users);
	return is;
}

/* Only pointers and bits are read: @other may be gone, but its structure is there. */
static bool is_code_of(const struct vm_area_struct *other, const struct file *file)
{
	return READ_ONCE(other->vm_file) == file &&
	       READ_ONCE(other->vm_flags) & VM_EXEC;
}

/* Is a mapping near @vma of the same open file executable? A loader opens it once. */
static bool is_beside_code(struct vm_area_struct *vma)
{
	MA_STATE(mas, &vma->vm_mm->mm_mt, vma->vm_start, vma->vm_start);
	struct vm_area_struct *other;
	bool is = false;
	int i;

	rcu_read_lock();
	for (i = 0; i < NEAR && !is && (other = mas_prev(&mas, 0)); i++)
		is = is_code_of(other, vma->vm_file);
	mas_set(&mas, vma->vm_start);
	for (i = 0; i <= NEAR && !is && (other = mas_next(&mas, ULONG_MAX)); i++)
		is = is_code_of(other, vma->vm_file);
	rcu_read_unlock();
	return is;
}

static bool is_program(struct vm_area_struct *vma)
{
	int is = begins_as_elf(vma->vm_file->f_mapping);

	return is < 0 ? is_beside_code(vma) : is;
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
	       !is_program(vma);
}
